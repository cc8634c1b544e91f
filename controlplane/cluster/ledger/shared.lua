-- What all share.
local function record()
	local kind, is_conductors, id, version, bytes = arg(), arg() == '1', arg(), number(), arg()
	local versions = P .. 'q:' .. kind
	if is_conductors and not is_conductor then
		return STALE
	end
	local was = tonumber(call('HGET', versions, id) or 0)
	if version > 0 and (version < was or (version == was and not is_conductors)) then
		return STALE
	end
	if bytes == '' then
		call('HDEL', versions, id)
		if call('HDEL', P .. 'r:' .. kind, id) == 0 then
			return DONE -- it was not there: no news
		end
	elseif call('HLEN', P .. 'r:' .. kind) >= RECORDS_MAX and
		call('HEXISTS', P .. 'r:' .. kind, id) == 0 then
		return FULL
	else
		call('HSET', P .. 'r:' .. kind, id, bytes)
		if version > 0 then
			call('HSET', versions, id, text(version))
		end
	end
	tell('7', kind, id, bytes)
	return DONE
end

-- How often a code was used, and what for, by code and holder: `VERSION VISITOR KEY GATHERED`.
local function code()
	local id, what, uses, spent, holder = arg(), arg(), number(), arg(), arg()
	local visitor, key, is_gathered = arg(), arg(), arg()
	if not line_of(id) then
		return UNKNOWN
	end
	local counts, places = P .. 'o:' .. id, P .. 'u:' .. id
	if what == '4' then
		local is_of_all = spent == NONE16 .. NONE16
		local used = is_of_all and call('HLEN', counts) or
			number_of(call('HGET', counts, spent), 'o:' .. id, spent)
		return GRANTED .. format(' %016x %016x 0', used, is_of_all and call('HLEN', places) or 0)
	end
	local place = call('HGET', places, spent .. holder)
	if what == '2' then
		if place and sub(place, 3, 18) == visitor then
			call('HDEL', places, spent .. holder)
			if call('HINCRBY', counts, spent, -1) == 0 then
				call('HDEL', counts, spent)
			end
		end
		return DONE
	end
	if place and what == '1' and call('ZSCORE', P .. 'l:' .. id, sub(place, 20, 35) .. sub(place, 3, 18)) then
		return LAPSED
	end
	if not place then
		local is_known = what == '3'
		if not is_known and meta.recovering == 1 then
			return UNKNOWN
		end
		if not is_known and number_of(call('HGET', counts, spent), 'o:' .. id, spent) >= uses then
			return LAPSED
		end
		place = '1 ' .. visitor .. ' ' .. key .. ' ' .. is_gathered
		call('HSET', places, spent .. holder, place)
		call('HINCRBY', counts, spent, 1)
	end
	return GRANTED .. ' ' .. sub(place, 3, 37) -- what a newer version has behind it is its affair
end

-- Gatherings: ids in one string, and by member who told how much of it: `SOURCE WHOLE COUNT`; and
-- `drawn`.
local gatherings = {ids_max = 64, page = 4096}

function gatherings.tell(line, g, h, source, from, ids, is_whole)
	local was = call('HGET', h, self.number)
	local is_same = was and sub(was, 1, 16) == source
	local has = is_same and tonumber(sub(was, 20)) or 0
	if from > has then
		return REFUSED
	end
	local fresh = sub(ids, 16 * (has - from) + 1)
	if #fresh > 0 then
		call('APPEND', g, fresh)
		if not call('HGET', h, 'drawn') then
			set(line, 'gathering', line.gathering + #fresh / 16)
		end
	end
	local was_whole = is_same and sub(was, 18, 18) == '1'
	call('HSET', h, self.number, source .. ' ' .. ((is_whole or was_whole) and 1 or 0) .. ' ' ..
		text(has + #fresh / 16))
	return DONE
end

function gatherings.finish(line, g, h)
	if not call('HGET', h, 'drawn') then
		set(line, 'gathering', max(0, line.gathering - call('STRLEN', g) / 16))
		call('HSET', h, 'drawn', 1)
	end
end

function gatherings.place(line, from, to, visitor)
	local l = P .. 'l:' .. line.id
	if call('ZREM', l, from .. visitor) == 0 then
		return
	end
	if to ~= NONE16 and to >= line.floor then
		call('ZADD', l, 0, to .. visitor)
	else
		to = NONE16
	end
	tell('2', line.id, to, visitor)
end

function gatherings.entry()
	local id, what, which, source, from, ids = arg(), arg(), arg(), arg(), number(), arg()
	local is_whole, people, key, place = arg() == '1', number(), arg(), arg()
	local line = line_of(id)
	if not line then
		return UNKNOWN
	end
	local g, h = P .. 'g:' .. id .. ':' .. which, P .. 'h:' .. id .. ':' .. which
	local is_over = tonumber(which) <= line.over
	if is_over and (what == '1' or what == '2') then
		return DONE -- somebody has not heard of it
	elseif what == '1' then
		return gatherings.tell(line, g, h, source, from, ids, is_whole)
	elseif what == '2' then
		gatherings.finish(line, g, h)
		set(line, 'drawn', max(line.drawn, people))
	elseif what == '3' then
		gatherings.place(line, key, place, ids)
	else
		gatherings.finish(line, g, h)
		call('DEL', g, h)
		set(line, 'over', max(line.over, tonumber(which)))
	end
	return DONE
end

-- Questions.
local pages = {}

local function people_now(line)
	local people, above = 4294967295, line
	while above do
		people = min(people, people_here(above))
		above = above.parent
	end
	return people
end

-- Who came since the conductor asked last; the first time in office it is not told of those before.
local function take_came(line)
	if not is_conductor or not line.is_line then
		return ''
	end
	local w, keys = P .. 'w:' .. line.id, {}
	if line.came_fence ~= fence then
		call('DEL', w)
		set(line, 'came_fence', fence)
		set(line, 'came_kept', 0)
	elseif line.came_kept > 0 then
		keys = call('LPOP', w, CAME_MAX)
		set(line, 'came_kept', line.came_kept - #keys)
	end
	return table.concat(keys)
end

local function view()
	local id, takes = arg(), arg() == '1'
	local node = node_of(id)
	if not node then
		return UNKNOWN
	end
	local first = call('ZRANGEBYLEX', P .. 'p:' .. node.id, '-', '+', 'LIMIT', 0, 1)[1]
	local counts = {DONE, node.threshold, node.floor, first and sub(first, 1, 16) or 'ffffffffffffffff'}
	for _, count in ipairs({node.rank, total(node), node.people, node.taken,
		call('ZCOUNT', P .. 'e:' .. node.id, '-inf', text(now + VIEW_AHEAD_MS)), settled(node), node.came,
		node.admitted, node.directs, node.undone, node.ended, node.expired, node.lost, people_now(node),
		node.open and 1 or 0, is_conflict(node) and 1 or 0, node.to_rank}) do
		counts[#counts + 1] = text(count)
	end
	counts[#counts + 1] = configs.others(node)
	counts[#counts + 1] = match(node.words, WORDS) -- a newer conductor says more
	counts[#counts + 1] = first_held(node)
	counts[#counts + 1] = now < node.crowded_until and 1 or 0
	for _, count in ipairs({rated_here(node), left_here(node), newcomers_here(node)}) do
		counts[#counts + 1] = text(min(count, 4294967295))
	end
	counts[#counts + 1] = takes and take_came(node) or ''
	return table.concat(counts, ' ')
end

-- Which members have told all.
function gatherings.whole(h)
	local has_told, told = {}, call('HGETALL', h)
	for i = 1, #told, 2 do
		local n = tonumber(told[i])
		if n then
			has_told[n] = sub(told[i + 1], 18, 18) == '1'
		end
	end
	return bits.of(has_told)
end

-- Ids of all, from number `from` on; at least one item, which says who has told all.
function gatherings.read(id, which, from, item)
	local g = P .. 'g:' .. id .. ':' .. which
	local mask = gatherings.whole(P .. 'h:' .. id .. ':' .. which)
	local ids = call('GETRANGE', g, text(16 * from), text(16 * (from + gatherings.page) - 1))
	local at = 0
	repeat
		item('8', id, which, text(from + at), mask, sub(ids, 16 * at + 1, 16 * (at + gatherings.ids_max)))
		at = at + gatherings.ids_max
	until 16 * at >= #ids
	return table.concat({DONE, text(from + #ids / 16), text(call('STRLEN', g) / 16)}, ' ')
end

-- Sets are read from their end backwards: what is dropped meanwhile stands at their beginning.
local function read()
	local id, what, kind, member, from, which = arg(), arg(), arg(), arg(), number(), arg()
	local line = what ~= '7' and line_of(id)
	if line == nil then
		return UNKNOWN
	end
	local count, sum = 0, text(line and line.counted or 0)
	local function item(...)
		pages[#pages + 1] = '0 ' .. table.concat({...}, ' ')
	end
	if what == '8' then
		return gatherings.read(id, which, from, item)
	end
	if what == '1' then
		local items = call('ZREVRANGE', P .. 'x:' .. id, from, from + PAGE_MAX - 1, 'WITHSCORES')
		for i = 1, #items, 2 do
			item('1', id, items[i], items[i + 1])
		end
		count = #items / 2
	elseif what == '2' then
		local items = call('ZREVRANGE', P .. 'l:' .. id, from, from + PAGE_MAX - 1)
		for _, place in ipairs(items) do
			item('2', id, sub(place, 1, 16), sub(place, 17))
		end
		count = #items
	elseif what == '4' then
		local items = call('LRANGE', P .. 's:' .. id .. ':' .. member, -from - PAGE_MAX, -from - 1)
		for _, held in ipairs(items) do
			item('4', id, member, sum, held)
		end
		count = #items
	elseif what == '7' then
		local ids = call('HKEYS', P .. 'r:' .. kind)
		table.sort(ids)
		for i = from + 1, min(from + PAGE_MAX, #ids) do
			item('7', kind, ids[i], call('HGET', P .. 'r:' .. kind, ids[i]))
			count = count + 1
		end
	end
	return table.concat({DONE, count < PAGE_MAX and 0 or text(from + count), sum}, ' ')
end

-- After a loss.
local function restore()
	local id, to, low, rank, seen_fence, final = arg(), arg(), arg(), number(), number(), number()
	if meta.recovering == 0 then
		return REFUSED
	end
	if seen_fence > meta.fence then
		meta.fence = seen_fence
		configs.end_office()
	end
	meta.final = max(meta.final, final)
	if id == '00000000' then
		return DONE
	end
	local line = line_of(id)
	if not line then
		return UNKNOWN
	end
	if raise(line, to, low, rank, false) then
		tell_line(line)
	end
	return DONE
end

local function restored()
	local epoch, peers = number(), arg()
	if epoch ~= meta.epoch then
		return REFUSED
	end
	for n in pairs(bits.read(peers)) do
		meta.peers[n] = true
	end
	self.restored = meta.epoch
	memory.back(self.number)
	return DONE
end
