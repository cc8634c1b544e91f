-- Status polls on kept connections. Each thread first draws TICKETS tickets (64), then polls with
-- each in turn: a connection hardly ever sees the same one twice, so each MAC is computed. With as
-- many threads as connections and one ticket each, tokens are remembered.
--
--   wrk2 -t2 -c200 -R100000 -d30s -L -s polls.lua http://192.0.2.10/derby/ [TICKETS]
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local visitor = dofile(here .. "visitor.lua")

function init(args)
	visitor.init(tonumber(args[1]) or 64)
end

request = visitor.request
response = visitor.response
