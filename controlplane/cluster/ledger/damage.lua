-- What all parts use, out of the one function that they are: it has no more than 200 locals.
local call, P = redis.call, KEYS[1]
local floor, min, max, huge = math.floor, math.min, math.max, math.huge
local sub, format, match = string.sub, string.format, string.match

local function text(n) -- a whole number as digits
	return format('%.0f', n)
end

-- Keys that somebody else has written. A batch that fails says which is to be repaired, as `DAMAGED KEY
-- ...`; Redis does not. What is read as a number, or in parts, is looked at then; for a type that is
-- another the keys are searched, once a batch has failed, so that it costs nothing while all is well.
local function damaged(key, field)
	error({err = 'DAMAGED ' .. P .. key .. (field and ' (' .. field .. ')' or '')})
end

local function number_of(value, key, field) -- no value is 0
	return tonumber(value or 0) or damaged(key, field)
end

-- Members of which something holds: a table by number, or sixteen digits with a bit for each.
local bits = {}

function bits.of(is)
	local nibbles = {}
	for i = 16, 1, -1 do
		local nibble = 0
		for at = 0, 3 do
			nibble = nibble + (is[4 * (16 - i) + at] and 2 ^ at or 0)
		end
		nibbles[i] = format('%x', nibble)
	end
	return table.concat(nibbles)
end

function bits.read(mask)
	local is = {}
	for n = 0, 4 * #mask - 1 do
		local at = #mask - floor(n / 4)
		local nibble = tonumber(sub(mask, at, at), 16) or 0
		is[n] = floor(nibble / 2 ^ (n % 4)) % 2 == 1 or nil
	end
	return is
end

local function find_damage(failure)
	local types = {meta = 'hash', names = 'hash', news = 'stream', lines = 'set', pools = 'set',
		ending = 'zset'}
	local of_node = {n = 'hash', k = 'set', p = 'zset', d = 'zset', w = 'list', v = 'hash', e = 'zset',
		c = 'zset', i = 'set', l = 'zset', x = 'zset', o = 'hash', u = 'hash'}
	local function wrong(key, wanted)
		local is = redis.pcall('TYPE', P .. key).ok
		return is ~= 'none' and is ~= wanted and
			'DAMAGED ' .. P .. key .. ', which is a ' .. is .. ' and was a ' .. wanted
	end
	local function wrong_of(id, members)
		for letter, wanted in pairs(of_node) do
			local found = wrong(letter .. ':' .. id, wanted)
			if found then
				return found
			end
		end
		for n = 0, members - 1 do
			local found = wrong('s:' .. id .. ':' .. n, 'list')
			if found then
				return found
			end
		end
	end
	for key, wanted in pairs(types) do
		local found = wrong(key, wanted)
		if found then
			return found
		end
	end
	for n = 0, 63 do
		local found = wrong('m:' .. n, 'hash') or wrong('a:' .. n, 'string') or
			wrong('r:' .. n, 'hash') or wrong('q:' .. n, 'hash')
		if found then
			return found
		end
	end
	for _, set in ipairs({'lines', 'pools'}) do
		for _, id in ipairs(call('SMEMBERS', P .. set)) do
			local found = wrong_of(id, call('HLEN', P .. 'names'))
			if found then
				return found
			end
		end
	end
	return failure
end

local function guarded(ledger)
	local is_done, answer = pcall(ledger)
	if is_done then
		return answer
	end
	answer = type(answer) == 'table' and answer.err or tostring(answer)
	if sub(answer, 1, 9) == 'WRONGTYPE' or string.find(answer, 'user_script', 1, true) then
		answer = find_damage(answer)
	end
	return {err = answer}
end

