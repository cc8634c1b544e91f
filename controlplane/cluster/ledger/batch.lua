-- The ledger's script: one batch of one member, taken as a whole. What it does is said, sentence by
-- sentence, in ledger.h; this file is that in Lua 5.1 for Redis 7.0. The keys are in README.md.
--
--   header ─▶ who sends · when · has anything been lost ─▶ entries, one by one ─▶ one string
--
-- Numbers here are doubles. So keys, visitors and sessions are never numbers: they are 16 lower-case
-- hex digits and compare as strings (digits stand before letters in every locale, which Lua asks);
-- times and counts stay below 2^53. A node (a line, or a pool of
-- lines) is read once in a batch, with all that share slots with it, changed as a table, and what
-- changed is written back at the end.
--
-- Every line has
--   p: present, by (key, visitor)      d: the same, by when they cease to be
--   v: visitors known, their record    e: sessions, by when their slot is free
--   c: tickets used, by (key, visitor) l: tickets given back, by (key, visitor)
--   x: sessions ended early, by the end of their pass

-- As in ledger.h.
local SKEW_MS, LIVE_MS, LEASE_MS, RECOVER_MS = 250, 2000, 1500, 3000
local MEMBERS_MAX, TREE_MAX, FREED_MAX, SLOT_LISTS_MAX = 64, 256, 1024, 64
local NEWS_MAX, NEWS_REPLY_MAX, PAGE_MAX, RECORDS_MAX = 16384, 256, 64, 4096
local CAME_MAX, CAME_KEPT_MAX = 256, 4096
local LATER_MS, CROWDED_MS, NEXT_MAX_S, CREDIT, VIEW_AHEAD_MS = 700, 20000, 10, 64, 5000
local STRIDE, PASS_MAX = 2 ^ 30, 2 ^ 50
local UNITS_MAX, WEIGHT_MAX, DAY_MS = 2 ^ 52, 1000000, 86400000
local NONE16 = '0000000000000000'
local ACTIVE, ENDING, OVER = '1', '2', '3'
local GRANTED, NEXT, REFUSED, LAPSED, RENEWED, LEFT, DONE, STALE, FULL, UNKNOWN =
	'1', '2', '3', '4', '5', '6', '7', '8', '9', '10'
local MEMBERS_NONE = 64

-- Arguments, in order.
local at = 0
local function arg()
	at = at + 1
	return ARGV[at]
end
local function number()
	at = at + 1
	return tonumber(ARGV[at])
end

local name, incarnation = arg(), arg()
local batch, sent_ms, fence, cursor, applied, closed = arg(), number(), number(), number(), number(), number()
local run, writes, gone, appliance, entry_count = arg(), number(), number(), number(), number()

-- The book's own page: hash `meta`. Everything here is a number but for run, incarnations, and what
-- has a bit for each member.
local meta_fields = {'run', 'writes', 'epoch', 'recovering', 'since', 'unsure',
	'correction', 'seen', 'steady', 'news', 'conductor', 'conductor_is', 'fence', 'until', 'order',
	'jumped', 'final', 'gone', 'gone_before', 'surely', 'peers', 'missing'}
local meta = {}
do
	local found = call('HMGET', P .. 'meta', unpack(meta_fields))
	for i, field in ipairs(meta_fields) do
		local is_text = field == 'run' or field == 'conductor_is'
		if field == 'peers' or field == 'missing' then
			meta[field] = bits.read(found[i] or '')
		else
			meta[field] = is_text and (found[i] or '') or number_of(found[i], 'meta', field)
		end
	end
	meta.conductor = found[11] and meta.conductor or MEMBERS_NONE
end

local raw
do
	local t = redis.call('TIME')
	raw = tonumber(t[1]) * 1000 + floor(tonumber(t[2]) / 1000)
end
local time = raw + meta.correction
local is_skewed = math.abs(sent_ms - time) > SKEW_MS or time < meta.seen - SKEW_MS
if not is_skewed then
	meta.seen = max(meta.seen, time)
end
local now = meta.seen -- cluster time: it never goes back
local now_s = floor(now / 1000)
local told_ms = time < now - SKEW_MS and now or time -- who is new begins no earlier than that

-- Members: hash `names` says who has which number, `m:NN` what is known of each.
local function is_near(ms, span)
	return math.abs(raw - ms) < span
end

local members, numbers = {}, {} -- by number; ascending
local self
do
	local names = call('HGETALL', P .. 'names')
	for i = 1, #names, 2 do
		local m = {name = names[i], number = number_of(names[i + 1], 'names', names[i])}
		local f = call('HMGET', P .. 'm:' .. m.number, 'is', 'batch', 'heard', 'applied', 'closed',
			'restored', 'left', 'at')
		local function of(n)
			return number_of(f[n], 'm:' .. m.number)
		end
		m.is, m.batch, m.heard, m.applied = f[1] or '', of(2), of(3), of(4)
		m.closed, m.restored, m.left, m.at = of(5), of(6), f[7] == '1', of(8)
		m.is_live = not m.left and is_near(m.heard, LIVE_MS)
		members[m.number] = m
		numbers[#numbers + 1] = m.number
		if m.name == name then
			self = m
		end
	end
	table.sort(numbers)
end

local function save_meta()
	local fields = {}
	for _, field in ipairs(meta_fields) do
		local value = meta[field]
		fields[#fields + 1] = field
		fields[#fields + 1] = type(value) == 'number' and text(value) or
			type(value) == 'table' and bits.of(value) or value
	end
	call('HSET', P .. 'meta', unpack(fields))
end

-- A reply without entries.
local function refuse(verdict)
	return table.concat({'1', verdict, 0, 0, 0, appliance, MEMBERS_NONE, 0, 0, 0, text(cursor),
		text(meta.news), text(told_ms), text(raw), text(meta.correction), 0, 0, 0, 0, 0}, ' ')
end

if self then
	local order = tonumber(batch)
	if self.is ~= incarnation then
		if self.is_live then
			return refuse(2)
		end
	elseif order == self.batch then
		local before = call('GET', P .. 'a:' .. self.number)
		if before then
			call('HSET', P .. 'm:' .. self.number, 'heard', text(raw))
			return before
		end
	elseif order < self.batch then
		return refuse(3)
	end
end

-- News: stream `news`, numbered by us; kept and told to all at the end, so that a batch that fails
-- leaves none behind whose number is given again.
local told = {}
local function tell(...)
	meta.news = meta.news + 1
	local line = text(meta.news) .. ' ' .. table.concat({...}, ' ')
	told[#told + 1] = line
	return meta.news
end

-- A process is no more that may have been granted something until then. Of those that the book knew
-- to be gone before it lost writes, it knows all that they were granted.
local memory = {now = is_skewed and max(now, sent_ms) or now} -- a book that is new has no time yet

function memory.unsure(ms)
	meta.gone, meta.unsure = max(meta.gone, ms), max(meta.unsure, ms)
end

function memory.went(ms)
	if meta.recovering == 1 and ms > meta.gone_before then
		memory.unsure(ms)
	end
	meta.gone = max(meta.gone, ms)
end

-- What was lost with a member that was missing is known now.
function memory.back(n)
	if meta.recovering == 0 and meta.missing[n] then
		meta.missing[n] = nil
		meta.unsure = next(meta.missing) and meta.unsure or meta.surely
	end
end

for _, n in ipairs(numbers) do
	local m = members[n]
	if m ~= self and not m.is_live and not m.left then
		memory.went(m.at)
	end
end

-- Writes that were lost.
local is_lost = writes > meta.writes or (run ~= meta.run and meta.writes > 0) or
	(not self and gone > max(meta.gone, now - DAY_MS))
if is_lost then
	meta.epoch = max(meta.epoch + 1, raw) -- not one that was before, in a book that is lost
	meta.recovering, meta.since = 1, raw
	meta.gone_before, meta.peers, meta.missing = meta.gone, {}, {}
	meta.conductor, meta.conductor_is, meta['until'] = MEMBERS_NONE, '', 0
	meta.writes = max(meta.writes, writes)
	for _, id in ipairs(call('SMEMBERS', P .. 'lines')) do
		call('DEL', P .. 'i:' .. id)
	end
end
meta.run = run
if meta.recovering == 1 then
	memory.went(gone)
end
if is_lost or cursor > meta.news then
	meta.news = max(meta.news, cursor) + NEWS_MAX + 1
	meta.jumped = meta.news -- there are none between
	call('DEL', P .. 'news') -- of a book of which the rest is lost: their numbers may be higher
end
if meta.recovering == 1 and not is_skewed and not is_near(meta.since, RECOVER_MS) then
	local is_over, missing = true, {}
	for n = 0, MEMBERS_MAX - 1 do
		local m = members[n]
		if m and m.restored ~= meta.epoch and not m.left then
			is_over = is_over and not m.is_live and m ~= self
			missing[n] = true
		elseif not m and meta.peers[n] then -- it was there with those who are
			missing[n] = true
		end
	end
	if is_over then
		meta.recovering, meta.missing, meta.surely = 0, missing, meta.unsure
		if next(missing) then
			memory.unsure(now)
		end
	end
end

-- A number for a name that has none.
local numbering = {} -- (in a table, as others are, for a script has no more than 200 locals)

function numbering.has_passed(n) -- floor all that is counted of a number that is not used
	for _, id in ipairs(call('SMEMBERS', P .. 'lines')) do
		local f = call('HMGET', P .. 'n:' .. id, 't' .. n, 'floor')
		if f[1] and f[1] ~= '0' and sub(f[2] or NONE16, 1, 10) < format('%010x', members[n].closed) then
			return false
		end
	end
	return true
end

function numbering.forget(n) -- what a number was before
	for _, id in ipairs(call('SMEMBERS', P .. 'lines')) do
		local total = call('HGET', P .. 'n:' .. id, 't' .. n)
		if total then
			call('HINCRBY', P .. 'n:' .. id, 'before', total)
		end
		call('HDEL', P .. 'n:' .. id, 't' .. n, 'h' .. n, 'held' .. n, 'z' .. n)
		call('DEL', P .. 's:' .. id .. ':' .. n)
	end
	call('HDEL', P .. 'names', members[n].name)
	call('DEL', P .. 'm:' .. n, P .. 'a:' .. n)
end

function numbering.find()
	if appliance < MEMBERS_MAX and not members[appliance] then
		return appliance
	end
	if meta.recovering == 1 then
		return nil
	end
	for n = 0, MEMBERS_MAX - 1 do
		if not members[n] then
			return n
		end
	end
	for n = 0, MEMBERS_MAX - 1 do
		if not members[n].is_live and numbering.has_passed(n) then
			numbering.forget(n)
			return n
		end
	end
end

local is_new = not self or self.is ~= incarnation
if not self then
	local n = numbering.find()
	if not n then
		save_meta()
		return refuse(4)
	end
	if not members[n] then
		numbers[#numbers + 1] = n
		table.sort(numbers)
	end
	self = {name = name, number = n, restored = 0, closed = 0}
	members[n] = self
	call('HSET', P .. 'names', name, n)
	if meta.recovering == 0 then
		self.restored = meta.epoch -- it was not there
	end
end
if is_new then
	if self.is and not self.left then
		local went = meta.recovering == 1 and memory.unsure or memory.went
		went(memory.now) -- what it was granted, nobody remembers
	end
	if writes == 0 and gone > 0 and appliance == self.number and meta.missing[appliance] then
		meta.surely = max(meta.surely, gone) -- that of a member that was missing
		memory.back(appliance)
	end
	self.is, self.applied = incarnation, 0
	tell('5', self.number, 1, name)
end
self.heard, self.left, self.is_live = raw, false, true
self.batch, self.applied, self.closed = tonumber(batch), applied, max(self.closed, closed)
meta.writes = meta.writes + 1

local is_conductor = meta.conductor == self.number and meta.conductor_is == incarnation and
	fence > 0 and fence == meta.fence

-- News that every live member has in force; none while the clock has just been set.
local in_force = meta.news
for _, n in ipairs(numbers) do
	if members[n].is_live then
		in_force = min(in_force, members[n].applied)
	end
end
if is_skewed or (meta.steady > 0 and is_near(meta.steady, LIVE_MS)) then
	in_force = 0
end
