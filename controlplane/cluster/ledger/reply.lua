-- The entries, and the reply.
local by_kind = {['1'] = called, ['2'] = direct, ['3'] = renew, ['4'] = end_early, ['5'] = leave,
	['6'] = gone, ['7'] = taken, ['8'] = slots, ['9'] = config, ['10'] = elect, ['11'] = goodbye,
	['12'] = threshold, ['13'] = node, ['14'] = correction, ['15'] = record, ['16'] = code,
	['17'] = gatherings.entry, ['18'] = view, ['19'] = read, ['20'] = restore, ['21'] = restored,
	['22'] = hold}

free_ended()
local answers = {}
for i = 1, entry_count do
	local kind = arg()
	answers[i] = kind .. ' ' .. by_kind[kind]()
end
write_nodes()

-- Slots below `final` are told, of everybody who lives. While what was lost is told again, it stands.
if meta.recovering == 0 then
	local least = floor(now / 10)
	for _, n in ipairs(numbers) do
		if members[n].is_live then
			least = min(least, members[n].closed)
		end
	end
	meta.final = max(meta.final, least)
end

for i, line in ipairs(told) do
	call('XADD', P .. 'news', 'MAXLEN', '=', NEWS_MAX, text(meta.news - #told + i) .. '-0', 'n', line)
end

local function news_since()
	local news = {}
	if cursor < max(meta.jumped, meta.news - NEWS_MAX) then
		cursor = meta.news
		return news, 1
	elseif cursor < meta.news then
		local found = call('XRANGE', P .. 'news', '(' .. text(cursor) .. '-0', '+', 'COUNT',
			NEWS_REPLY_MAX)
		for i, entry in ipairs(found) do
			news[i] = entry[2][2]
			cursor = cursor + 1
		end
	end
	return news, 0
end

local function as_text(answers)
	local news, is_resync = news_since()
	local has_all = is_resync == 0 and cursor == meta.news and meta.recovering == 0
	local reply = {table.concat({'1', '1', is_skewed and 1 or 0, meta.recovering, is_resync,
		self.number, meta.conductor, text(meta.fence), text(meta.epoch), text(meta.writes),
		text(cursor), text(meta.news), text(told_ms), text(raw), text(meta.correction),
		text(meta.gone), text(has_all and meta.final or 0), #answers, #numbers,
		#pages + #news}, ' ')}
	for _, answer in ipairs(answers) do
		reply[#reply + 1] = answer
	end
	for _, n in ipairs(numbers) do
		local m = members[n]
		reply[#reply + 1] = table.concat({n, m.name, m.is_live and 1 or 0,
			m.restored == meta.epoch and 1 or 0, text(m.closed), m.left and 1 or 0,
			text(m.applied)}, ' ')
	end
	for _, line in ipairs(pages) do
		reply[#reply + 1] = line
	end
	for _, line in ipairs(news) do
		reply[#reply + 1] = line
	end
	return table.concat(reply, '\n')
end

call('HSET', P .. 'm:' .. self.number, 'version', 1, 'is', incarnation, 'batch', batch, 'heard', text(raw),
	'at', text(memory.now), 'applied', text(self.applied), 'closed', text(self.closed),
	'restored', text(self.restored), 'left', self.left and 1 or 0)
save_meta()

local whole = as_text(answers)
call('SET', P .. 'a:' .. self.number, whole)
if #told > 0 then
	call('PUBLISH', P .. 'news', table.concat(told, '\n'))
end
return whole
