-- The state of a ledger as sorted lines, to be compared with model_dump(). Keys: prefix.
local P, out = KEYS[1], {}
local call = redis.call
local function put(...)
	local line = {...}
	for i, field in ipairs(line) do
		line[i] = type(field) == 'number' and string.format('%.0f', field) or
			(string.gsub(tostring(field), ' tomorrow', ''))
	end
	out[#out + 1] = table.concat(line, ' ')
end
local function scored(name, id, key)
	local items = call('ZRANGE', key, 0, -1, 'WITHSCORES')
	for i = 1, #items, 2 do
		put(name, id, items[i], tonumber(items[i + 1]))
	end
end
local function hash(key)
	local found, h = call('HGETALL', key), {}
	for i = 1, #found, 2 do
		h[found[i]] = found[i + 1]
	end
	return h
end

local m = hash(P .. 'meta')
if m.run then
	put('meta', m.run, m.writes, m.epoch, m.recovering, m.since, m.unsure, m.correction,
		m.seen, m.steady, m.news, m.conductor, m.fence, m['until'], m.order, m.jumped, m.final, m.gone,
		m.gone_before, m.surely, m.peers, m.missing)
end
local numbers = {}
for name, n in pairs(hash(P .. 'names')) do
	local h = hash(P .. 'm:' .. n)
	put('member', n, name, h.is, h.batch, h.heard, h.at, h.applied, h.closed, h.restored, h.left)
	numbers[#numbers + 1] = n
end
local ending = call('ZRANGE', P .. 'ending', 0, -1, 'WITHSCORES')
for i = 1, #ending, 2 do
	put('ending', tonumber(ending[i + 1]), ending[i])
end

local function node(id, is_line)
	local h = hash(P .. 'n:' .. id)
	local zero = '0000000000000000'
	put('node', id, h.parent, h.priority or 0, h.order or 0, h.open or 0, h.active or 0, h.level or 0,
		h.filled or 0, h.all_start or 0, h.all_used or 0, h.newcomers_start or 0, h.newcomers_used or 0,
		h.pass or 0, h.served or 0, h.epoch or 0, h.lost or 0, h.lost_until or 0,
		h.lost_of or 0, h.sure or 0)
	if not is_line then
		return
	end
	local total = tonumber(h.before or 0) + tonumber(h.drawn or 0) + tonumber(h.gathering or 0)
	for field, value in pairs(h) do
		total = total + (string.match(field, '^t%d+$') and tonumber(value) or 0)
	end
	put('line', id, h.threshold or zero, h.floor or zero, h.rank or 0, h.coming or 0, h.room_ahead or 0,
		h.ahead or 0, h.crowded or zero, h.crowded_until or 0, h.admitted or 0, h.directs or 0,
		h.undone or 0, h.ended or 0, h.expired or 0, h.came or 0, total, h.to_rank or 0,
		h.came_fence or 0, h.counted or 0, h.drawn or 0, h.gathering or 0, h.over or 0,
		h.words or 'ffffffffffffffff ffffffffffffffff 1 0 0 0 0 0 0 0')
	for i, key in ipairs(call('LRANGE', P .. 'w:' .. id, 0, -1)) do
		put('came', id, i, key)
	end
	for field, value in pairs(h) do
		local n = string.match(field, '^held(%d+)$')
		if n then
			put('held', id, n, value)
		end
	end
	for visitor, record in pairs(hash(P .. 'v:' .. id)) do
		put('visitor', id, visitor, record)
	end
	scored('session', id, P .. 'e:' .. id)
	scored('present', id, P .. 'd:' .. id)
	scored('early', id, P .. 'x:' .. id)
	for _, place in ipairs(call('ZRANGEBYLEX', P .. 'c:' .. id, '[' .. (h.floor or zero), '+')) do
		put('used', id, place)
	end
	for _, visitor in ipairs(call('SMEMBERS', P .. 'i:' .. id)) do
		put('affirmed', id, visitor)
	end
	for _, place in ipairs(call('ZRANGE', P .. 'l:' .. id, 0, -1)) do
		put('left', id, place)
	end
	for code, used in pairs(hash(P .. 'o:' .. id)) do
		put('code', id, code, used)
	end
	for use, place in pairs(hash(P .. 'u:' .. id)) do
		put('use', id, use, place)
	end
	for _, which in ipairs({1, 2, 3}) do -- as crowd.c numbers them
		for member, told in pairs(hash(P .. 'h:' .. id .. ':' .. which)) do
			put('told', id, which, member, told)
		end
		local ids = call('GET', P .. 'g:' .. id .. ':' .. which) or ''
		for i = 1, #ids / 16 do
			put('gathered', id, which, i, string.sub(ids, 16 * i - 15, 16 * i))
		end
	end
	for _, n in ipairs(numbers) do
		for i, held in ipairs(call('LRANGE', P .. 's:' .. id .. ':' .. n, 0, -1)) do
			put('slots', id, n, i, held)
		end
	end
	if call('ZCARD', P .. 'p:' .. id) ~= call('ZCARD', P .. 'd:' .. id) then
		put('present of', id, 'is not what it was')
	end
end
for _, id in ipairs(call('SMEMBERS', P .. 'lines')) do
	node(id, true)
end
for _, id in ipairs(call('SMEMBERS', P .. 'pools')) do
	node(id, false)
end
table.sort(out)
return table.concat(out, '\n') .. '\n'
