-- What the profiles of wrk2 share: the heads that a browser sends, and the tickets that it is given.
--
-- Every thread of wrk2 has a copy of its own. It is not told which connection asks, so a thread's
-- tickets are carried by its connections in turn; with one connection a thread, each keeps its own.
local visitor = {}

local BROWSER = {
	["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
		.. "Chrome/126.0.0.0 Safari/537.36",
	["Accept-Encoding"] = "gzip, deflate, br",
	["Accept-Language"] = "en-US,en;q=0.9",
}
local NAVIGATION = {
	["Accept"] = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
	["Sec-Fetch-Site"] = "none",
	["Sec-Fetch-Mode"] = "navigate",
	["Sec-Fetch-Dest"] = "document",
}
local SCRIPT = {
	["Accept"] = "application/json",
	["Sec-Fetch-Site"] = "same-origin",
	["Sec-Fetch-Mode"] = "cors",
	["Sec-Fetch-Dest"] = "empty",
}

-- A GET with these header fields, the browser's, and those of wrk2's own -H.
local function head(path, ...)
	local fields = {}
	for _, some in ipairs({ BROWSER, wrk.headers, ... }) do
		for name, value in pairs(some) do
			fields[name] = value
		end
	end
	return wrk.format("GET", path, fields)
end

-- The GET of the room's page, which is the path of the URL.
function visitor.arrival()
	return head(wrk.path, NAVIGATION)
end

local wanted -- tickets of this thread
local asked = 0 -- pages
local polls = {} -- a request for each ticket drawn
local turn = 0
visitor.told_s = 1 -- until the next poll, by the last answer

function visitor.init(tickets)
	wanted = tickets
	visitor.page = visitor.arrival()
end

function visitor.is_arriving()
	return asked < wanted or #polls == 0
end

-- Pages until all tickets are asked for, then polls with each in turn. (wrk2 begins by asking the
-- first thread for a request that it does not send: that one draws a ticket less.)
function visitor.request()
	if visitor.is_arriving() then
		asked = asked + 1
		return visitor.page
	end
	turn = turn % #polls + 1
	return polls[turn]
end

function visitor.response(_, headers)
	visitor.told_s = tonumber(headers["Retry-After"]) or visitor.told_s
	local cookie, room = (headers["Set-Cookie"] or ""):match("^(sluice%-t%-([^=]+)=[^;]+)")
	if cookie and #polls < wanted then
		polls[#polls + 1] = head("/.sluice/" .. room .. "/status", SCRIPT, { ["Cookie"] = cookie })
	end
end

return visitor
