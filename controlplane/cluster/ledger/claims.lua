-- Claims. Each reads its five arguments first.
local claim = {}
local function read_claim()
	local line = arg()
	claim.key, claim.visitor, claim.session = arg(), arg(), arg()
	claim.expires, claim.poll_after = number(), number()
	return line_of(line)
end

local function is_on(r)
	return r.state == ACTIVE and (is_skewed or r.expires * 1000 > now)
end

local function say_known(line, r)
	if is_on(r) then
		return GRANTED .. ' ' .. r.session .. ' ' .. text(r.expires)
	end
	return LAPSED
end

local function is_conflict(line)
	return line.config ~= NONE16 and (line.f['h' .. self.number] or NONE16) ~= line.config
end

local function may_grant(line)
	return not is_skewed and meta.recovering == 0 and line.open and not line.tree.is_large and
		not is_conflict(line)
end

-- Whether a ticket's place is among the present, and which.
local function leave_present(line, place)
	if call('ZREM', P .. 'p:' .. line.id, place) == 1 then
		call('ZREM', P .. 'd:' .. line.id, place)
		line.people = line.people - 1
	end
end

local function use_ticket(line)
	if claim.key ~= NONE16 and claim.key >= line.floor then
		call('ZADD', P .. 'c:' .. line.id, 0, claim.key .. claim.visitor)
	end
end

local function enter_session(line, state, expires)
	keep(line, {version = '1', state = state, session = claim.session, key = claim.key,
		expires = expires, visitor = claim.visitor, rest = ''})
	if state ~= OVER then
		call('ZADD', P .. 'e:' .. line.id, text(expires * 1000 + SKEW_MS), claim.visitor)
	end
	use_ticket(line)
end

local function begin(line, is_direct)
	local expires = floor((now + 999) / 1000) + line.session
	charge(line, is_direct)
	enter_session(line, ACTIVE, expires)
	set(line, 'admitted', line.admitted + 1)
	return GRANTED .. ' ' .. claim.session .. ' ' .. text(expires)
end

-- It is present, or gives way to those before it.
local function become_present(line, place, poll_after)
	local p, d = P .. 'p:' .. line.id, P .. 'd:' .. line.id
	local is_here = call('ZSCORE', d, place)
	if not is_here and line.people >= line.present_max then
		local last = call('ZREVRANGE', p, 0, 0)[1]
		local out = place > last and place or last
		local key = sub(out, 1, 16)
		if now >= line.crowded_until or key <= line.crowded then
			set(line, 'crowded', key)
			set(line, 'crowded_until', now + CROWDED_MS)
		end
		if out == place then
			return
		end
		leave_present(line, out)
	end
	if not is_here then
		call('ZADD', p, 0, place)
		line.people = line.people + 1
	end
	call('ZADD', d, text(now + LATER_MS + 2000 * min(60, max(poll_after, claim.poll_after))), place)
end

-- Who came for the first time, for the conductor, who asks for it (view()).
local function note_came(line, key)
	set(line, 'came', line.came + 1)
	if line.came_kept < CAME_KEPT_MAX then
		set(line, 'came_kept', line.came_kept + 1)
		call('RPUSH', P .. 'w:' .. line.id, key)
	end
end

local function called()
	local line = read_claim()
	if not line then
		return UNKNOWN
	end
	local known = record_of(line, claim.visitor)
	if known then
		return say_known(line, known)
	end
	local place = claim.key .. claim.visitor
	if claim.key < line.floor or call('ZSCORE', P .. 'l:' .. line.id, place) then
		return LAPSED
	end
	if claim.key >= line.threshold or not may_grant(line) then
		return NEXT .. ' ' .. NEXT_MAX_S
	end
	if not call('ZSCORE', P .. 'p:' .. line.id, place) then
		note_came(line, claim.key)
	end
	local before = call('ZLEXCOUNT', P .. 'p:' .. line.id, '-', '(' .. place)
	local over = excess(line, before)
	local is_crowded = now < line.crowded_until and claim.key > line.crowded
	if not over and not is_crowded and has_room(line, false) then
		leave_present(line, place)
		return begin(line, false)
	end
	local poll_after = 1
	if over then
		local wait_ms = floor(over * line.ahead / max(1, line.room_ahead))
		local part_ms = floor(wait_ms / (line.parent and 4 or 2))
		poll_after = min(floor(part_ms / 1000) + 1, NEXT_MAX_S)
	end
	become_present(line, place, poll_after)
	return NEXT .. ' ' .. poll_after
end

local function direct()
	local line = read_claim()
	if not line then
		return UNKNOWN
	end
	local known = record_of(line, claim.visitor)
	if known then
		return say_known(line, known)
	end
	claim.key = NONE16
	if not line.direct or not may_grant(line) or not nobody_waits(line) or
		not has_room(line, true) then
		return REFUSED
	end
	set(line, 'directs', line.directs + 1)
	return begin(line, true)
end

local function move_end(line, r, expires)
	r.expires = expires
	keep(line, r)
	call('ZADD', P .. 'e:' .. line.id, text(expires * 1000 + SKEW_MS), r.visitor)
end

local function renew()
	local line = read_claim()
	if not line then
		return UNKNOWN
	end
	local known = record_of(line, claim.visitor)
	if not known or known.session ~= claim.session or not is_on(known) then
		return meta.recovering == 1 and UNKNOWN or LAPSED
	end
	local is_asked = claim.expires == 0 or (line.sliding and claim.expires == known.expires)
	local expires = floor((now + 999) / 1000) + line.session
	if is_asked and not is_skewed and expires > known.expires then
		move_end(line, known, expires)
	end
	return RENEWED .. ' ' .. known.session .. ' ' .. text(known.expires)
end

-- Its pass is refused until then; a slot that it holds is free when all know that.
local function refuse_pass(line, session, expires, known)
	call('ZADD', P .. 'x:' .. line.id, text(expires), session)
	local news = tell('1', line.id, session, text(expires))
	if known then
		affirm_no_more(line, known.visitor)
		known.state = ENDING
		move_end(line, known, expires)
		call('ZADD', P .. 'ending', text(news), line.id .. known.visitor .. session)
	end
end

-- A pass is to be refused everywhere from now on. Returns its verdict.
local function end_session(line, session, expires, known)
	local x = P .. 'x:' .. line.id
	if known and known.session == session then
		if not is_on(known) then
			return DONE
		end
		expires = max(expires, known.expires) -- a renewal may have been lost
	elseif (not is_skewed and expires <= now_s) or call('ZSCORE', x, session) then
		return DONE
	else
		known = nil
	end
	if call('ZCARD', x) >= line.ended_max then
		return FULL
	end
	refuse_pass(line, session, expires, known)
	return DONE
end

local function end_early()
	local line = read_claim()
	if not line then
		return UNKNOWN
	end
	return end_session(line, claim.session, claim.expires, record_of(line, claim.visitor))
end

local function give_ticket_back(line, known)
	local l, place = P .. 'l:' .. line.id, claim.key .. claim.visitor
	if known then
		return end_session(line, known.session, known.expires, known)
	end
	if claim.key >= line.floor and not call('ZSCORE', l, place) and
		call('ZCARD', l) < line.left_max then
		leave_present(line, place)
		call('ZADD', l, 0, place)
		tell('2', line.id, claim.key, claim.visitor)
	end
	return DONE
end

local function leave()
	local line = read_claim()
	if not line then
		return UNKNOWN
	end
	local known = record_of(line, claim.visitor)
	local verdict = DONE
	if claim.key ~= NONE16 then
		verdict = give_ticket_back(line, known)
	end
	if claim.session ~= NONE16 then
		local ended = end_session(line, claim.session, claim.expires, known)
		verdict = ended == FULL and FULL or verdict
	end
	return verdict == FULL and FULL or LEFT
end

local function gone()
	local line = read_claim()
	if not line then
		return UNKNOWN
	end
	local known = record_of(line, claim.visitor)
	if known and known.session == claim.session and known.state == ACTIVE and known.key == NONE16 then
		call('HDEL', P .. 'v:' .. line.id, claim.visitor)
		call('ZREM', P .. 'e:' .. line.id, claim.visitor)
		give(line, 1)
		set(line, 'undone', line.undone + 1)
	end
	return DONE
end

-- A session that is known, as a member knows it: the later end is that of its pass. That it ended
-- early, its member hears as everybody does.
local function taken_again(line, known)
	local is_later = claim.expires > known.expires
	if known.key == NONE16 and claim.key ~= NONE16 then -- who said it first did not know it
		known.key = claim.key
		keep(line, known)
		use_ticket(line)
	end
	if known.state == ACTIVE then
		local has_slot = call('ZSCORE', P .. 'e:' .. line.id, claim.visitor)
		if not has_slot then -- that key was deleted, and no other
			give(line, -1)
		end
		if is_later or not has_slot then
			move_end(line, known, max(claim.expires, known.expires))
		end
		affirm(line, claim.visitor)
	elseif not is_later or claim.expires <= now_s then
		return
	elseif known.state == ENDING or call('ZSCORE', P .. 'x:' .. line.id, claim.session) then
		refuse_pass(line, claim.session, claim.expires, known.state == ENDING and known or nil)
	else
		known.state = ACTIVE -- it seemed to be over
		move_end(line, known, claim.expires)
		give(line, -1)
		affirm(line, claim.visitor)
	end
end

local function taken()
	local line = read_claim()
	if not line then
		return UNKNOWN
	end
	local known = record_of(line, claim.visitor)
	if known and known.session ~= claim.session then
		return LAPSED
	elseif known then
		taken_again(line, known)
		return DONE
	end
	local is_over = claim.expires <= now_s
	if is_over and (claim.key == NONE16 or claim.key < line.floor) then
		return DONE
	end
	leave_present(line, claim.key .. claim.visitor)
	enter_session(line, is_over and OVER or ACTIVE, claim.expires)
	if not is_over then
		give(line, -1)
		affirm(line, claim.visitor)
	end
	return DONE
end
