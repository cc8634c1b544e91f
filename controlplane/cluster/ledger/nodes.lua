-- Nodes: read with all that share slots with them.
local nodes, count_of_nodes = {}, 0

local function set(node, field, value)
	node[field] = value
	node.changed[field] = type(value) == 'number' and text(value) or value
end

local node_numbers = {'parent_is', 'priority', 'weight', 'order', 'capacity', 'rate', 'period', 'burst',
	'all', 'all_period', 'newcomers', 'newcomers_period', 'session', 'present_max', 'left_max',
	'ended_max', 'rank', 'coming', 'room_ahead', 'ahead', 'crowded_until', 'level', 'filled',
	'all_start', 'all_used', 'newcomers_start', 'newcomers_used', 'pass', 'served', 'epoch', 'lost',
	'lost_until', 'lost_of', 'sure', 'admitted', 'directs', 'undone', 'ended', 'expired', 'came', 'before',
	'to_rank', 'came_kept', 'came_fence', 'counted', 'drawn', 'gathering', 'over'}
local NO_WORDS = 'ffffffffffffffff ffffffffffffffff 1 0 0 0 0 0 0 0'
local WORDS = '^' .. string.rep('%S+ ', 9) .. '%S+'
local node_flags = {'is_line', 'sliding', 'direct', 'open', 'active'}

local function read_node(id)
	local key = P .. 'n:' .. id
	local pairs_of = call('HGETALL', key)
	if #pairs_of == 0 then
		return nil
	end
	local f = {}
	for i = 1, #pairs_of, 2 do
		f[pairs_of[i]] = pairs_of[i + 1]
	end
	local node = {id = id, key = key, changed = {}, kids = {}, f = f, taken = 0, people = 0}
	for _, field in ipairs(node_numbers) do
		node[field] = number_of(f[field], 'n:' .. id, field)
	end
	for _, field in ipairs(node_flags) do
		node[field] = f[field] == '1'
	end
	node.parent_id, node.config = f.parent or '00000000', f.config or NONE16
	node.threshold, node.floor = f.threshold or NONE16, f.floor or NONE16
	node.crowded, node.words = f.crowded or NONE16, f.words or NO_WORDS
	for _, field in ipairs({'threshold', 'floor', 'crowded'}) do
		if #node[field] ~= 16 or match(node[field], '[^0-9a-f]') then
			damaged('n:' .. id, field)
		end
	end
	if not match(node.words, WORDS) then
		damaged('n:' .. id, 'words')
	end
	node.stride = floor(STRIDE / max(1, node.weight))
	nodes[id] = node
	count_of_nodes = count_of_nodes + 1
	return node
end

local function flag(node, field, value)
	node[field] = value
	node.changed[field] = value and '1' or '0'
end

local function sort_kids(node)
	table.sort(node.kids, function(a, b)
		if a.priority ~= b.priority then
			return a.priority < b.priority
		end
		return a.order < b.order
	end)
end

-- Slots that are free from here on: sessions of a line that are over.
local function record_of(line, visitor)
	local was = call('HGET', P .. 'v:' .. line.id, visitor)
	if not was then
		return nil
	end
	local version, state, session, key, expires, rest =
		match(was, '^(%d+) (%d) (%x+) (%x+) (%d+)(.*)$')
	if not version then
		damaged('v:' .. line.id, visitor)
	end
	return {version = version, state = state, session = session, key = key,
		expires = tonumber(expires), rest = rest, visitor = visitor}
end

local function keep(line, r)
	call('HSET', P .. 'v:' .. line.id, r.visitor, table.concat({r.version, r.state, r.session, r.key,
		text(r.expires)}, ' ') .. r.rest)
end

local function give(line, count)
	local node = line
	while node do
		node.taken = node.taken - count
		node = node.parent
	end
end

local AFFIRMED_S = 86400 -- of a session that is longer, nothing is affirmed after that

-- Sessions that members have written back since writes were lost, and that nobody has ended since.
local function affirm(line, visitor)
	if meta.recovering == 1 then
		call('SADD', P .. 'i:' .. line.id, visitor)
		call('EXPIRE', P .. 'i:' .. line.id, AFFIRMED_S)
	end
end

local function affirm_no_more(line, visitor)
	if meta.recovering == 1 then
		call('SREM', P .. 'i:' .. line.id, visitor)
	end
end

local function affirmed(node)
	local count = node.is_line and
		call('ZINTERCARD', 2, P .. 'i:' .. node.id, P .. 'e:' .. node.id) or 0
	for _, kid in ipairs(node.kids) do
		count = count + affirmed(kid)
	end
	return count
end

-- The slot of a visitor's session is free; the ticket stays used until floor has passed it.
local function end_slot(line, visitor, r)
	call('ZREM', P .. 'e:' .. line.id, visitor)
	if not r then
		return
	end
	local field = r.state == ENDING and 'ended' or 'expired'
	set(line, field, line[field] + 1)
	if r.key == NONE16 or r.key < line.floor then
		call('HDEL', P .. 'v:' .. line.id, visitor)
	else
		r.state = OVER
		keep(line, r)
	end
end

-- A session that was written back ran out: somebody who is missing may have renewed it.
local function keep_unsure(line, visitor, r)
	if not r or r.state ~= ACTIVE or now >= line.lost_until or
		call('SISMEMBER', P .. 'i:' .. line.id, visitor) == 0 then
		return
	end
	local node = line
	while node do
		set(node, 'lost', node.capacity > 0 and node.lost + 1 or 0)
		node = node.parent
	end
end

-- What time alone, and floor, have done to a line since.
local function open_line(line)
	local p, d, e, c = P .. 'p:' .. line.id, P .. 'd:' .. line.id, P .. 'e:' .. line.id,
		P .. 'c:' .. line.id
	if not is_skewed then
		for _, visitor in ipairs(call('ZRANGEBYSCORE', e, '-inf', now, 'LIMIT', 0, FREED_MAX)) do
			local r = record_of(line, visitor)
			keep_unsure(line, visitor, r)
			end_slot(line, visitor, r)
		end
		local gone = call('ZRANGEBYSCORE', d, '-inf', now, 'LIMIT', 0, FREED_MAX)
		if #gone > 0 then
			call('ZREM', p, unpack(gone))
			call('ZREM', d, unpack(gone))
		end
		call('ZREMRANGEBYSCORE', P .. 'x:' .. line.id, '-inf', now_s)
	end
	local passed = call('ZRANGEBYLEX', c, '-', '(' .. line.floor, 'LIMIT', 0, FREED_MAX)
	for _, used in ipairs(passed) do
		local r = record_of(line, sub(used, 17))
		if r and r.state == OVER then
			call('HDEL', P .. 'v:' .. line.id, r.visitor)
		end
	end
	if #passed > 0 then
		call('ZREM', c, unpack(passed))
	end
	passed = call('ZRANGEBYLEX', P .. 'l:' .. line.id, '-', '(' .. line.floor, 'LIMIT', 0, FREED_MAX)
	if #passed > 0 then
		call('ZREM', P .. 'l:' .. line.id, unpack(passed))
	end
	line.people = call('ZCARD', p)
	line.taken = call('ZCARD', e)
end

-- Buckets and quotas, brought up to now.
local function advance(node)
	if is_skewed then
		return
	end
	if node.rate > 0 then
		local full = node.burst * node.period
		local units = (now - node.filled) * node.rate -- exact below 2^53, and beyond it only compared
		if units >= full - node.level then
			units = full - node.level
		end
		if units > 0 then
			set(node, 'level', node.level + units)
		end
		if node.filled ~= now then
			set(node, 'filled', now)
		end
	end
	for _, quota in ipairs({'all', 'newcomers'}) do
		local period = node[quota .. '_period']
		if node[quota] > 0 and now - now % period ~= node[quota .. '_start'] then
			set(node, quota .. '_start', now - now % period)
			set(node, quota .. '_used', 0)
		end
	end
end

-- Those who returned begin where the others are; those who fell behind get so much back.
local function has_people(node)
	if node.is_line and node.open and node.people + node.coming > 0 then
		return true
	end
	for _, kid in ipairs(node.kids) do
		if has_people(kid) then
			return true
		end
	end
	return false
end

local function keep_time(node)
	local served = {}
	for _, kid in ipairs(node.kids) do
		served[kid.priority] = max(served[kid.priority] or 0, kid.served)
	end
	for _, kid in ipairs(node.kids) do
		local credit = kid.active and CREDIT * kid.stride or 0
		local is_active = has_people(kid)
		if is_active ~= kid.active then
			flag(kid, 'active', is_active)
		end
		if is_active and kid.pass + credit < served[kid.priority] then
			set(kid, 'pass', served[kid.priority] - credit)
		end
	end
end

-- After a recovery, at the first look: nothing in the buckets.
local function empty_buckets(node)
	if node.epoch == meta.epoch then
		return
	end
	set(node, 'epoch', meta.epoch)
	set(node, 'level', 0)
	for _, quota in ipairs({'all', 'newcomers'}) do
		if node[quota] > 0 then
			set(node, quota .. '_used', node[quota])
		end
	end
end

-- And what may have been granted is. A session in the book that nobody who is there has written back
-- may have been ended, and its slot given to somebody whom only who is gone remembers: the affirmed
-- alone are known to hold theirs. Counted once, and again while limits change before it is over.
local function count_unsure(node, longest_s)
	local ends_s = floor((meta.unsure + 999) / 1000) + longest_s -- as of begin()
	local until_ms = meta.unsure > 0 and ends_s * 1000 + SKEW_MS or 0
	if node.sure == meta.unsure and (now >= node.lost_until or
		(node.lost_until == until_ms and node.lost_of == node.capacity)) then
		return
	end
	set(node, 'sure', meta.unsure)
	local is_promised = node.capacity > 0 and now < until_ms
	set(node, 'lost', is_promised and max(0, node.capacity - affirmed(node)) or 0)
	set(node, 'lost_until', until_ms)
	set(node, 'lost_of', node.capacity)
end

local function settle(node, tree)
	tree.count = tree.count + 1
	tree[tree.count] = node
	node.tree = tree
	if node.is_line then
		open_line(node)
		tree.longest = max(tree.longest, node.session)
	end
	for _, id in ipairs(call('SMEMBERS', P .. 'k:' .. node.id)) do
		local kid = tree.count < TREE_MAX and (nodes[id] or read_node(id))
		if kid then
			kid.parent = node
			node.kids[#node.kids + 1] = kid
			settle(kid, tree)
			node.taken = node.taken + kid.taken
		elseif tree.count >= TREE_MAX then
			tree.is_large = true
		end
	end
	sort_kids(node)
end

-- The tree of a node, from its root on.
local function open_tree(root)
	local tree = {count = 0, longest = 0}
	settle(root, tree)
	for _, node in ipairs(tree) do
		advance(node)
		if meta.recovering == 0 and not is_skewed then
			empty_buckets(node)
			count_unsure(node, tree.longest)
		end
		if node.lost > 0 and now >= node.lost_until and not is_skewed then
			set(node, 'lost', 0)
		end
	end
	if not is_skewed then
		for _, node in ipairs(tree) do
			keep_time(node)
		end
	end
end

local function node_of(id)
	local node = nodes[id]
	if node then
		return node
	end
	local root = read_node(id)
	if not root then
		return nil
	end
	node = root
	local above = nodes[root.parent_id] or read_node(root.parent_id)
	while above do
		root = above
		above = nodes[root.parent_id] or read_node(root.parent_id)
	end
	open_tree(root)
	if not node.tree then -- it found no place in a tree that is too large
		node.tree = {is_large = true}
		if node.is_line then
			open_line(node)
		end
	end
	return node
end

local function line_of(id)
	local node = node_of(id)
	return node and node.is_line and node or nil
end

-- Sessions that ended early, and every live member refuses their passes.
local function free_ended()
	local due = call('ZRANGEBYSCORE', P .. 'ending', '-inf', text(in_force), 'LIMIT', 0, FREED_MAX)
	for _, what in ipairs(due) do
		local line, visitor, session = line_of(sub(what, 1, 8)), sub(what, 9, 24), sub(what, 25)
		local r = line and record_of(line, visitor)
		if r and r.state == ENDING and r.session == session then
			end_slot(line, visitor, r)
			give(line, 1)
		end
		call('ZREM', P .. 'ending', what)
	end
end
