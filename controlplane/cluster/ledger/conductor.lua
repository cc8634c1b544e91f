-- What a member says of itself.
local function keep_field(line, field, value)
	line.f[field], line.changed[field] = value, value
end

-- Of slots, those that are neither told before nor late; and the tickets in them.
local function timely(line, held, is_again)
	local final, field, kept, count = format('%010x', meta.final), 'z' .. self.number, {}, 0
	local last = line.f[field] or '0000000000'
	for i = 1, #held, 16 do
		local slot = sub(held, i, i + 9)
		if slot > last then
			last = slot
			if slot >= final or (is_again and meta.recovering == 1) then
				kept[#kept + 1] = sub(held, i, i + 15)
				count = count + tonumber(sub(held, i + 10, i + 15), 16)
			end
		end
	end
	keep_field(line, field, last)
	return table.concat(kept), count
end

local function slots()
	local id, held, sum, is_again = arg(), arg(), number(), arg() == '1'
	local line = line_of(id)
	if not line then
		return UNKNOWN
	end
	local field = 't' .. self.number
	if sum > tonumber(line.f[field] or 0) then
		keep_field(line, field, text(sum))
	end
	local kept, count = timely(line, held, is_again)
	if #kept > 0 then
		call('RPUSH', P .. 's:' .. id .. ':' .. self.number, kept)
		set(line, 'counted', line.counted + count)
		tell('4', id, self.number, text(line.counted), kept)
	end
	return DONE
end

-- Who conducts is one of those whose configuration is that of most who live, as far as can be: of no
-- one who lives are there fewer lines that most have configured otherwise.
local configs = {} -- and nodes, as they are configured

function configs.hashes_of(id, live)
	if nodes[id] then
		local hashes = {}
		for i, n in ipairs(live) do
			hashes[i] = nodes[id].f['h' .. n]
		end
		return hashes
	end
	local fields = {}
	for i, n in ipairs(live) do
		fields[i] = 'h' .. n
	end
	return call('HMGET', P .. 'n:' .. id, unpack(fields))
end

function configs.is_odd(number)
	local live, odd = {}, {}
	for _, n in ipairs(numbers) do
		if members[n].is_live then
			live[#live + 1], odd[n] = n, 0
		end
	end
	if #live < 3 or not odd[number] then
		return false -- there is no majority
	end
	for _, id in ipairs(call('SMEMBERS', P .. 'lines')) do
		local hashes, votes, most = configs.hashes_of(id, live), {}, 0
		for i in ipairs(live) do
			local hash = hashes[i]
			if hash then
				votes[hash] = (votes[hash] or 0) + 1
				most = max(most, votes[hash])
			end
		end
		for i, n in ipairs(live) do
			odd[n] = odd[n] + ((hashes[i] and votes[hashes[i]] or 0) < most and 1 or 0)
		end
	end
	local least = huge
	for _, n in ipairs(live) do
		least = min(least, odd[n])
	end
	return odd[number] > least
end

function configs.end_office()
	meta.conductor, meta.conductor_is, meta['until'] = MEMBERS_NONE, '', 0
	is_conductor = false
end

-- Members who live and have configured a line otherwise than it is: a bit for each, sixteen digits.
function configs.others(line)
	local is = {}
	for _, n in ipairs(numbers) do
		local hash = members[n].is_live and line.f['h' .. n]
		is[n] = hash and line.config ~= NONE16 and hash ~= line.config
	end
	return bits.of(is)
end

local function config()
	local id, hash = arg(), arg()
	local line = line_of(id)
	if not line then
		return UNKNOWN
	end
	keep_field(line, 'h' .. self.number, hash)
	if hash ~= line.config and configs.is_odd(meta.conductor) then
		configs.end_office()
	end
	return DONE
end

local function elect()
	local is_free = meta.conductor == MEMBERS_NONE or not is_near(meta['until'] - LEASE_MS, LEASE_MS)
	local is_same = meta.conductor == self.number and meta.conductor_is == incarnation
	if not is_free and not is_same then
		return REFUSED
	end
	if configs.is_odd(self.number) then
		if is_same then
			configs.end_office()
		end
		return REFUSED
	end
	if not is_same or is_free then
		meta.conductor, meta.conductor_is, meta.fence = self.number, incarnation, meta.fence + 1
		is_conductor = false -- it has to say the new one first
		tell('6', self.number, text(meta.fence))
	end
	meta['until'] = raw + LEASE_MS
	return DONE
end

local function goodbye()
	self.left, self.is_live = true, false
	memory.went(memory.now)
	if meta.conductor == self.number then
		configs.end_office()
	end
	tell('5', self.number, 0, name)
	return DONE
end

-- What the conductor says.
local function min_text(a, b)
	return a < b and a or b
end

local function trim_slots(line)
	for _, n in ipairs(numbers) do
		local s = P .. 's:' .. line.id .. ':' .. n
		for _ = 1, SLOT_LISTS_MAX do
			local first = call('LINDEX', s, 0)
			if not first or sub(first, -16, -7) >= sub(line.floor, 1, 10) then
				break
			end
			call('LPOP', s)
		end
	end
end

-- Keys that floor must not pass though nobody of them is present: those whose claims a member could
-- not take, and those who were crowded out.
local function hold()
	local id, key, ms = arg(), arg(), number()
	local line = line_of(id)
	if not line then
		return UNKNOWN
	end
	local field, held = 'held' .. self.number, key .. ' ' .. text(now + ms)
	line.f[field], line.changed[field] = held, held
	return DONE
end

local function first_held(line)
	local first = now < line.crowded_until and line.crowded or 'ffffffffffffffff'
	for _, n in ipairs(numbers) do
		local key, until_ms = match(line.f['held' .. n] or '', '^(%x+) (%d+)')
		if key and now < tonumber(until_ms) and key < first then
			first = key
		end
	end
	return first
end

-- An event is over: who is present below floor is so no more.
local function drop_present(line, below)
	local p = P .. 'p:' .. line.id
	while true do
		local gone = call('ZRANGEBYLEX', p, '-', '(' .. below, 'LIMIT', 0, FREED_MAX)
		if #gone == 0 then
			return
		end
		call('ZREM', p, unpack(gone))
		call('ZREM', P .. 'd:' .. line.id, unpack(gone))
		line.people = line.people - #gone
	end
end

-- Raise threshold and floor. Returns whether one of them moved.
local function raise(line, threshold, asked, rank, is_lapse)
	local to, has_moved = asked, threshold > line.threshold
	if has_moved then
		set(line, 'threshold', threshold)
		meta.final = max(meta.final, tonumber(sub(threshold, 1, 10), 16))
	end
	if is_lapse then
		drop_present(line, min_text(asked, line.threshold))
	else
		local first = call('ZRANGEBYLEX', P .. 'p:' .. line.id, '-', '+', 'LIMIT', 0, 1)[1]
		to = min_text(min_text(to, first_held(line)), first and sub(first, 1, 16) or to)
	end
	if to > line.threshold then
		to = line.threshold
	end
	if to > line.floor then
		set(line, 'floor', to)
		trim_slots(line)
		has_moved = true
	end
	if line.floor == asked and rank > line.rank then -- the rank of another key says too much
		set(line, 'rank', rank)
	end
	return has_moved
end

local function tell_line(line)
	tell('3', line.id, line.threshold, line.floor, text(line.rank), line.open and 1 or 0,
		text(line.to_rank), line.words)
end

local function threshold()
	local id, to, low, to_rank, rank, coming, room, ahead, open, is_lapse, words =
		arg(), arg(), arg(), number(), number(), number(), number(), number(), arg() == '1',
		arg() == '1', arg()
	if not is_conductor then
		return STALE
	end
	local line = line_of(id)
	if not line then
		return UNKNOWN
	end
	if sub(to, 1, 10) > format('%010x', floor((now + 1000) / 10)) then
		return REFUSED
	end
	local has_moved = raise(line, to, low, rank, is_lapse) or words ~= line.words
	if line.threshold == to and to_rank > line.to_rank then
		set(line, 'to_rank', to_rank)
	end
	set(line, 'words', words)
	set(line, 'coming', coming)
	set(line, 'room_ahead', room)
	set(line, 'ahead', ahead)
	if open ~= line.open then
		flag(line, 'open', open)
		has_moved = true
	end
	if has_moved then
		tell_line(line)
	end
	return DONE
end

local function write_nodes()
	for _, node in pairs(nodes) do
		local fields = {}
		for field, value in pairs(node.changed) do
			fields[#fields + 1] = field
			fields[#fields + 1] = value
		end
		if #fields > 0 then
			call('HSET', node.key, unpack(fields))
		end
		node.changed = {}
	end
end

-- Other limits: a bucket keeps its people, as far as there is room.
local function set_limits(node, is_fresh, rate, period, burst)
	local full = burst * period
	local level = full
	if not is_fresh and node.rate > 0 and rate > 0 then
		level = min(full, floor(node.level / node.period) * period)
	end
	set(node, 'rate', rate)
	set(node, 'period', period)
	set(node, 'burst', burst)
	set(node, 'level', level)
	set(node, 'filled', now)
end

local function set_quota(node, quota, count, period)
	if period ~= node[quota .. '_period'] then
		set(node, quota .. '_start', period > 0 and now - now % period or 0)
		set(node, quota .. '_used', 0)
	end
	set(node, quota, count)
	set(node, quota .. '_period', period)
end

local function is_below(id, above) -- whether `id` is `above`, or somewhere below it
	for _ = 1, TREE_MAX do
		if id == above then
			return true
		end
		local parent = call('HGET', P .. 'n:' .. id, 'parent')
		if not parent or parent == '00000000' then
			return false
		end
		id = parent
	end
	return true
end

-- A node is new: its sessions are counted in what is unsure of it, and above.
function configs.count_anew(id)
	while id ~= '00000000' do
		call('HSET', P .. 'n:' .. id, 'sure', 0)
		id = call('HGET', P .. 'n:' .. id, 'parent')
	end
end

-- Where it stands among others: behind those that there are.
function configs.place(it, parent, priority)
	if parent ~= it.parent_id or priority ~= it.priority then
		meta.order = meta.order + 1
		set(it, 'order', meta.order)
		set(it, 'pass', 0)
		set(it, 'served', 0)
		flag(it, 'active', false)
	end
	if parent ~= it.parent_id then
		call('SREM', P .. 'k:' .. it.parent_id, it.id)
		if parent ~= '00000000' then
			call('SADD', P .. 'k:' .. parent, it.id)
		end
		it.changed.parent = parent
	end
	set(it, 'priority', priority)
end

local function node()
	local id, parent, priority, weight = arg(), arg(), number(), number()
	local capacity, rate, period, burst = number(), number(), number(), number()
	local all, all_period, newcomers, newcomers_period = number(), number(), number(), number()
	local is_line, sliding, takes_direct = arg() == '1', arg() == '1', arg() == '1'
	local session, present_max, left_max, ended_max = number(), number(), number(), number()
	local hash = arg()
	if not is_conductor then
		return STALE
	end
	if priority < 1 or weight < 1 or weight > WEIGHT_MAX or burst < 1 or period > DAY_MS or
		(rate > 0 and period < 1) or burst * period > UNITS_MAX or
		(all > 0 and (all_period < 1000 or all_period % 1000 > 0)) or
		(newcomers > 0 and (newcomers_period < 1000 or newcomers_period % 1000 > 0)) or
		present_max < 1 or left_max < 1 or ended_max < 1 or id == '00000000' then
		return REFUSED
	end
	if parent ~= '00000000' and (call('HGET', P .. 'n:' .. parent, 'is_line') ~= '0' or
		is_below(parent, id)) then
		return REFUSED
	end
	local it = node_of(id)
	local is_fresh = not it
	if is_fresh then
		call('HSET', P .. 'n:' .. id, 'version', 1, 'parent', '00000000', 'epoch',
			meta.recovering == 1 and 0 or text(meta.epoch),
			'is_line', is_line and 1 or 0)
		call('SADD', P .. (is_line and 'lines' or 'pools'), id)
		it = node_of(id)
	elseif it.is_line ~= is_line then
		return REFUSED
	end
	configs.place(it, parent, priority)
	set(it, 'weight', weight)
	set(it, 'capacity', capacity)
	set_limits(it, is_fresh, rate, period, burst)
	set_quota(it, 'all', all, all_period)
	set_quota(it, 'newcomers', newcomers, newcomers_period)
	flag(it, 'sliding', sliding)
	flag(it, 'direct', takes_direct)
	set(it, 'session', session)
	set(it, 'present_max', present_max)
	set(it, 'left_max', left_max)
	set(it, 'ended_max', ended_max)
	it.changed.config = hash
	if is_fresh then
		set(it, 'lost', 0)
		set(it, 'lost_until', 0)
		set(it, 'lost_of', 0)
	end
	write_nodes()
	if is_fresh then
		configs.count_anew(id)
	end
	nodes = {} -- trees have changed: they are read anew
	return DONE
end

local function correction()
	local ms = number()
	if not is_conductor then
		return STALE
	end
	meta.correction, meta.steady = ms, raw
	return DONE
end
