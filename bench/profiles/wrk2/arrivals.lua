-- New arrivals: each request is a browser's GET of the room's page without a cookie, on a connection
-- of its own, and draws a ticket. With `keep` connections are kept: then it is only the page.
--
--   wrk2 -t2 -c200 -R20000 -d30s -L -s arrivals.lua http://192.0.2.10/derby/ [keep]
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local visitor = dofile(here .. "visitor.lua")
local page

function init(args)
	if args[1] ~= "keep" then
		wrk.headers["Connection"] = "close"
	end
	page = visitor.arrival()
end

function request()
	return page
end
