-- Who is next: as controlplane/controller/pool_order.c, which explains it.
local function free_here(node)
	if node.capacity == 0 then
		return huge
	end
	return max(0, node.capacity - node.taken - node.lost)
end

local function left_here(node)
	return node.all == 0 and huge or max(0, node.all - node.all_used)
end

local function newcomers_here(node)
	return node.newcomers == 0 and huge or max(0, node.newcomers - node.newcomers_used)
end

local function rated_here(node)
	return node.rate == 0 and huge or floor(node.level / node.period)
end

local function people_here(node)
	return min(rated_here(node), left_here(node))
end

local function has_room_here(node)
	return not (node.is_line and not node.open) and free_here(node) > 0 and people_here(node) > 0
end

local function reserved_here(node)
	local free = min(left_here(node), free_here(node))
	if node.rate == 0 then
		return free
	end
	local beyond = max(0, floor(node.rate * 1000 / node.period) - node.burst)
	return min(rated_here(node) + 2 + beyond, free)
end

local function at_door(node, is_coming)
	if not has_room_here(node) then
		return 0
	end
	local people = node.people + (is_coming and node.coming or 0)
	for _, kid in ipairs(node.kids) do
		people = people + at_door(kid, is_coming)
	end
	return min(people, free_here(node), people_here(node))
end

local function turns_until(node, pass)
	return pass < node.pass and 0 or floor((pass - node.pass) / node.stride) + 1
end

local function before_in_parent(node, before)
	local pass = node.pass + before * node.stride
	local others, is_behind = 0, true
	for _, kid in ipairs(node.parent.kids) do
		if kid.priority > node.priority then
			break
		end
		if kid == node then
			is_behind = false
		elseif kid.priority < node.priority then
			others = others + at_door(kid, true)
		elseif is_behind then
			others = others + min(at_door(kid, false), turns_until(kid, pass))
		elseif pass > 0 then
			others = others + min(at_door(kid, false), turns_until(kid, pass - 1))
		end
	end
	return before + others
end

-- How many too many are before it where it finds no reservation; nil: it finds one everywhere.
local function excess(line, before)
	local node, place = line, before
	while true do
		local reserved = reserved_here(node)
		if place >= reserved then
			return place - reserved
		end
		if not node.parent then
			return nil
		end
		place = before_in_parent(node, place)
		node = node.parent
	end
end

local function has_room(line, is_direct)
	local node = line
	while node do
		if free_here(node) < 1 or people_here(node) < 1 or
			(is_direct and newcomers_here(node) < 1) then
			return false
		end
		node = node.parent
	end
	return true
end

-- Virtual times of a class begin anew before a double loses count.
local function begin_anew(node)
	local least = huge
	for _, kid in ipairs(node.parent.kids) do
		if kid.priority == node.priority then
			least = min(least, kid.pass)
		end
	end
	for _, kid in ipairs(node.parent.kids) do
		if kid.priority == node.priority then
			set(kid, 'pass', kid.pass - least)
			set(kid, 'served', max(0, kid.served - least))
		end
	end
end

local function charge(line, is_direct)
	local node = line
	while node do
		if node.rate > 0 then
			set(node, 'level', node.level - node.period)
		end
		if node.all > 0 then
			set(node, 'all_used', node.all_used + 1)
		end
		if is_direct and node.newcomers > 0 then
			set(node, 'newcomers_used', node.newcomers_used + 1)
		end
		if node.parent then
			set(node, 'served', node.pass)
			set(node, 'pass', node.pass + node.stride)
			if node.pass > PASS_MAX then
				begin_anew(node)
			end
		end
		node.taken = node.taken + 1
		node = node.parent
	end
end

local function settled(line) -- tickets used or given back, from floor on
	return call('ZLEXCOUNT', P .. 'c:' .. line.id, '[' .. line.floor, '+') +
		call('ZLEXCOUNT', P .. 'l:' .. line.id, '[' .. line.floor, '+')
end

local function total(line)
	local sum = line.before + line.drawn + line.gathering
	for _, n in ipairs(numbers) do
		sum = sum + tonumber(line.f['t' .. n] or 0)
	end
	return sum
end

local function nobody_in(node)
	if not has_room_here(node) then
		return true -- what they cannot have is not kept for them
	end
	if node.is_line then
		return total(node) <= node.rank + settled(node)
	end
	for _, kid in ipairs(node.kids) do
		if not nobody_in(kid) then
			return false
		end
	end
	return true
end

local function nobody_waits(line)
	if total(line) > line.rank + settled(line) then
		return false
	end
	local node = line
	while node.parent do
		for _, kid in ipairs(node.parent.kids) do
			if kid.priority > node.priority then
				break
			end
			if kid ~= node and not nobody_in(kid) then
				return false
			end
		end
		node = node.parent
	end
	return true
end
