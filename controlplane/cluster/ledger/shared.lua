-- What all share.
local function record()
	local kind, is_conductors, id, bytes = arg(), arg() == '1', arg(), arg()
	if is_conductors and not is_conductor then
		return STALE
	end
	if bytes == '' then
		call('HDEL', P .. 'r:' .. kind, id)
	elseif call('HLEN', P .. 'r:' .. kind) >= RECORDS_MAX and
		call('HEXISTS', P .. 'r:' .. kind, id) == 0 then
		return FULL
	else
		call('HSET', P .. 'r:' .. kind, id, bytes)
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
	if not place then
		local is_known = what == '3'
		if not is_known and meta.recovering == 1 then
			return UNKNOWN
		end
		if not is_known and tonumber(call('HGET', counts, spent) or 0) >= uses then
			return LAPSED
		end
		place = '1 ' .. visitor .. ' ' .. key .. ' ' .. is_gathered
		call('HSET', places, spent .. holder, place)
		call('HINCRBY', counts, spent, 1)
	end
	return GRANTED .. ' ' .. sub(place, 3, 37) -- what a newer version has behind it is its affair
end

local function gathered()
	local id, which, ids, most, is_over = arg(), arg(), arg(), number(), arg() == '1'
	if not line_of(id) then
		return UNKNOWN
	end
	local key = P .. 'g:' .. id .. ':' .. which
	if is_over then
		for n = 0, MEMBERS_MAX - 1 do
			call('DEL', key .. ':' .. n)
		end
		return DONE
	end
	key = key .. ':' .. self.number
	if (call('STRLEN', key) + #ids) / 16 > most then
		return FULL
	end
	call('APPEND', key, ids)
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
	counts[#counts + 1] = match(node.words, WORDS) -- a newer conductor says more
	counts[#counts + 1] = first_held(node)
	counts[#counts + 1] = now < node.crowded_until and 1 or 0
	for _, count in ipairs({rated_here(node), left_here(node), newcomers_here(node)}) do
		counts[#counts + 1] = text(min(count, 4294967295))
	end
	counts[#counts + 1] = takes and take_came(node) or ''
	return table.concat(counts, ' ')
end

-- Sets are read from their end backwards: what is dropped meanwhile stands at their beginning.
local function read()
	local id, what, kind, member, from = arg(), arg(), arg(), arg(), number()
	local line = what ~= '7' and line_of(id)
	if line == nil then
		return UNKNOWN
	end
	local count, sum = 0, text(line and line.counted or 0)
	local function item(...)
		pages[#pages + 1] = '0 ' .. table.concat({...}, ' ')
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
		meta.conductor, meta.conductor_is, meta['until'] = MEMBERS_NONE, '', 0
		is_conductor = false
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
	if number() ~= meta.epoch then
		return REFUSED
	end
	self.restored = meta.epoch
	return DONE
end
