-- A step herd: VISITORS visitors of each thread (250) come at once, then poll, each with the ticket
-- it was given.
--
-- By wrk2 everything comes at the rate -R: the herd within visitors / R seconds, then the polls, so
-- that each visitor polls as often as all of them arrive:
--   wrk2 -t4 -c1000 -R1000 -d9s -L -s herd.lua http://192.0.2.10/derby/ 250
-- wrk knows delay() instead: with a connection for each visitor the herd comes within a second, and
-- polls when it is told to, up to a tenth later, as the queue page does:
--   wrk -t4 -c1000 -d60s --timeout 60s --latency -s herd.lua http://192.0.2.10/derby/ 250
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local visitor = dofile(here .. "visitor.lua")

function init(args)
	visitor.init(tonumber(args[1]) or 250)
end

request = visitor.request
response = visitor.response

-- Milliseconds until this connection's next request.
function delay()
	if visitor.is_arriving() then
		return math.random(0, 999)
	end
	return visitor.told_s * math.random(1000, 1100)
end
