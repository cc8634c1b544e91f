-- What a newer version would have in each shared record besides: a field of its own, or one more
-- behind those there are. Returns those that were lost since the last time, as text. Keys: prefix.
local P, call, lost = KEYS[1], redis.call, ''
local function keep(is_here, name)
	if not is_here and call('SISMEMBER', P .. 'tagged', name) == 1 then
		lost = lost .. name .. '\n'
	end
	call('SADD', P .. 'tagged', name)
end
local function field(key, name)
	if call('EXISTS', key) == 1 then
		keep(call('HEXISTS', key, 'tomorrow') == 1, name)
		call('HSET', key, 'tomorrow', '1')
	end
end
local function behind(key, at, was, name)
	local is_here = string.match(was, ' tomorrow$')
	if name then
		keep(is_here, name)
	end
	if not is_here then
		call('HSET', key, at, was .. ' tomorrow')
	end
end
local function each(key, of)
	local found = call('HGETALL', key)
	for i = 1, #found, 2 do
		of(found[i], found[i + 1])
	end
end

field(P .. 'meta', 'meta')
each(P .. 'names', function(_, n)
	local key = P .. 'm:' .. n
	field(key, 'm ' .. n .. ' ' .. (call('HGET', key, 'is') or ''))
end)
for _, set in ipairs({'lines', 'pools'}) do
	for _, id in ipairs(call('SMEMBERS', P .. set)) do
		local key = P .. 'n:' .. id
		field(key, 'n ' .. id)
		each(key, function(at, was)
			if at == 'words' or string.match(at, '^held') then
				behind(key, at, was)
			end
		end)
		each(P .. 'v:' .. id, function(visitor, was)
			behind(P .. 'v:' .. id, visitor, was, 'v ' .. id .. visitor .. string.sub(was, 5, 20))
		end)
		each(P .. 'u:' .. id, function(at, was)
			behind(P .. 'u:' .. id, at, was)
		end)
	end
end
return lost
