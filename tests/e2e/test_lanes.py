"""Goal: lanes: lines of their own within a room, and the ways into them."""
import json
import time

import pytest
from sluice import BROWSER, JSON, room, token, wait_for

pytestmark = pytest.mark.above

LANES = [{"name": "members", "weight": 3, "header": "X-Member", "header_value": "gold"},
         {"name": "sponsors", "priority": 1}]
MEMBER = dict(BROWSER, **{"X-Member": "gold"})


@pytest.fixture
def start(make):
    """start(**room keys): an appliance that trusts what our headers say."""
    def begin(**keys):
        sluice = make(rooms=[room(**dict({"capacity": 2, "lanes": LANES}, **keys))], start=False)
        sluice.config["trusted_proxies"] = [sluice.peer]
        return sluice.start()
    return begin


def counted(sluice):
    return {c["counter"]: c["value"] for c in sluice.show("counters") if c["part"] == "worker"}


def line(one):
    return token(one.ticket())["line"]


def come(visitor, sluice, path="/derby/", headers=None):
    one = visitor(sluice, headers=headers or BROWSER)
    one.get(path)
    return one


def leave(one):
    assert one.client.post("/.sluice/derby/leave").status_code == 204


def state(one):
    return one.status().json()["state"]


def link(sluice, *more):
    text = sluice.cli("lane", "link", "derby/sponsors", *more).stdout.strip()
    assert text.startswith("https://") and "sluice_lane=" in text
    return "/derby/?" + text.split("?")[1]


@pytest.mark.smoke
def test_a_lane_has_places_of_its_own(start, visitor):
    sluice = start()
    inside = [come(visitor, sluice) for _ in range(2)]
    assert all(one.passed() for one in inside)
    common = [come(visitor, sluice) for _ in range(3)]
    member = come(visitor, sluice, headers=MEMBER)
    assert line(member) != line(common[0])
    assert [one.status().json()["position"] for one in common] == [1, 2, 3]
    assert member.status().json()["position"] == 1
    # The lane is in the ticket: no header is needed any more, and nobody gets a second place.
    key = token(member.ticket())["key"]
    assert member.get("/derby/", headers={"X-Member": "none"}).headers["sluice-state"] == "waiting"
    assert token(member.ticket())["key"] == key
    assert counted(sluice)["lane_by_header"] == 1
    names = {one["room"]: one for one in sluice.show("rooms")}
    assert names["derby/members"]["waiting"] == 1 and names["derby"]["waiting"] == 3
    assert names["derby"]["sessions"] == 2
    told = sluice.show("room", "derby/members")
    assert told["weight"] == 3


def test_slots_are_those_of_the_room(start, visitor):
    sluice = start()
    member, common = come(visitor, sluice, headers=MEMBER), come(visitor, sluice)
    assert member.passed() and common.passed()
    assert token(member.passed())["line"] != token(common.passed())["line"]
    late = [come(visitor, sluice, headers=MEMBER), come(visitor, sluice)]
    assert not any(one.passed() for one in late)
    leave(member)
    wait_for(lambda: "admitted" in [state(one) for one in late], 8, 0.3)
    assert sum(line["sessions"] for line in sluice.show("rooms")) == 2
    assert member.get("/derby/").headers["sluice-state"] in ("waiting", "next")


def test_a_class_of_its_own(start, visitor):
    lanes = [dict(LANES[0], priority=1)]
    sluice = start(lanes=lanes, line_priority=2, capacity=1)
    inside = come(visitor, sluice)
    common = [come(visitor, sluice) for _ in range(2)]
    member = come(visitor, sluice, headers=MEMBER)
    leave(inside)
    wait_for(lambda: [state(one) for one in common] and state(member) == "admitted", 8, 0.3)
    assert all(state(one) in ("waiting", "next") for one in common)


def test_a_signed_link(start, visitor):
    sluice = start()
    path = link(sluice)
    inside = [come(visitor, sluice) for _ in range(2)]
    common = come(visitor, sluice)
    guest = come(visitor, sluice, path)
    assert line(guest) != line(common)
    # Whoever waits already may follow it too; and it is no use twice.
    common_key = token(common.ticket())["key"]
    common.get(path)
    assert line(common) == line(guest)
    key = token(common.ticket())["key"]
    assert key != common_key
    common.get(path)
    assert token(common.ticket())["key"] == key
    assert counted(sluice)["lane_by_link"] == 2
    leave(inside[0])
    wait_for(lambda: state(guest) == "admitted", 8, 0.3)
    assert guest.get("/derby/").text.startswith("shop:")


def test_a_link_followed_gives_the_old_place_up(start, visitor):
    """One visitor, one place; and a lost answer leaves nobody without."""
    sluice = start(capacity=1)
    come(visitor, sluice)
    path, one, behind = link(sluice), come(visitor, sluice), come(visitor, sluice)
    old, common = one.ticket(), line(one)
    first = one.get(path)
    place = token(one.ticket())["key"]
    assert first.headers["sluice-state"] == "waiting" and line(one) != common
    wait_for(lambda: sluice.show("room", "derby")["left"] == 1, 5)
    # The answer was lost: by the link, or by the address of the room, it is the same place.
    for way in (path, "/derby/", path):
        lost = visitor(sluice, headers=BROWSER)
        lost.client.cookies.set("sluice-t-derby", old)
        got = lost.get(way)
        assert old not in got.headers["set-cookie"]
        assert f"sluice-t-derby={one.ticket()[:32]}" in got.headers["set-cookie"]
        assert lost.status().json()["position"] == 1
    sluice.kill()
    sluice.start()
    lost = visitor(sluice, headers=BROWSER)
    lost.client.cookies.set("sluice-t-derby", old)
    assert f"sluice-t-derby={one.ticket()[:32]}" in lost.get("/derby/").headers["set-cookie"]
    assert token(one.ticket())["key"] == place and line(behind) == common
    # Whoever is behind moves up.
    assert behind.status().json()["ahead"] <= 1


def test_a_line_that_is_full_has_room_when_somebody_leaves(start, visitor):
    sluice = start(capacity=1, line_max=2, lanes=LANES)
    come(visitor, sluice)
    sluice.cli("room", "derby", "pause")
    one, two = come(visitor, sluice), come(visitor, sluice)
    full = visitor(sluice, headers=BROWSER)
    assert full.get("/derby/").headers["sluice-state"] == "full"
    leave(one)

    def has_room():
        full.get("/derby/")
        return full.ticket()
    wait_for(has_room, 5)
    assert visitor(sluice, headers=BROWSER).get("/derby/").headers["sluice-state"] == "full"
    assert two.ticket()


def test_the_address_of_a_link(start):
    sluice = start(capacity=1, lanes=LANES[1:])

    def told(**keys):
        sluice.config["sites"][0].update(keys)
        sluice.write()
        sluice.cli("reload")
        return sluice.cli("lane", "link", "derby/sponsors").stdout.strip()
    assert told(hosts=["*.club.example", "tickets.example", "localhost", "127.0.0.1"]) \
        .startswith("https://tickets.example/derby?")
    assert told(https="redirect", https_port=8443).startswith("https://tickets.example:8443/derby?")
    sluice.config["trusted_proxies"] = []
    port = sluice.url("").split(":")[-1].rstrip("/")
    plain = told(https="off", hosts=["*.club.example", "localhost", "127.0.0.1"])
    assert plain.startswith(f"http://localhost:{port}/derby?")
    assert told(hosts=["*.club.example"]).startswith(f"http://www.club.example:{port}/derby?")
    until = json.loads(sluice.cli("lane", "link", "derby/sponsors", "2033-01-01T00:00:00Z",
                                  "--json").stdout)
    assert until["lane"] == "derby/sponsors" and until["expires"] == 1988150400
    assert "sluice_lane=" in until["link"]
    assert json.loads(sluice.cli("lane", "link", "derby/sponsors", "--json").stdout)[
        "expires"] is None


def test_addresses_behind_proxies(make, visitor):
    """The last address that is no proxy of ours, whatever stands before it."""
    lanes = [{"name": "staff", "addresses": ["192.0.2.0/24", "2001:db8::/32"]}]
    sluice = make(rooms=[room(capacity=1, lanes=lanes)], start=False)
    sluice.config["trusted_proxies"] = [sluice.peer, "10.0.0.0/8"]
    sluice.start()
    come(visitor, sluice)
    common = line(come(visitor, sluice))
    for said, is_staff in (("192.0.2.7", True), ("192.0.2.7:4123", True),
                           ("198.51.100.1, 192.0.2.7, 10.0.0.1", True),
                           ("[2001:db8::7]:443, 10.0.0.1:80", True),
                           ("192.0.2.7, 198.51.100.1", False), ("10.0.0.1", False)):
        one = come(visitor, sluice, headers=dict(BROWSER, **{"X-Forwarded-For": said}))
        assert (line(one) != common) == is_staff, said


def test_a_link_takes_no_place_before_it_gives_one(start, visitor):
    """What draws nothing, and who finds no room, keeps the ticket of before."""
    sluice = start(capacity=1, line_max=1)
    come(visitor, sluice)
    one = come(visitor, sluice)
    path, ticket = link(sluice), one.ticket()
    common = line(one)
    attempts = [("GET", {"Sec-Purpose": "prefetch"}), ("GET", {"Sec-Fetch-Mode": "no-cors"}),
                ("HEAD", {}), ("POST", {})]
    for method, headers in attempts:
        answer = one.client.request(method, path, headers=headers)
        assert answer.status_code == 503 and "set-cookie" not in answer.headers, (method, headers)
    first = come(visitor, sluice, path)
    assert line(first) != common
    full = one.client.get(path, headers=BROWSER)
    assert full.headers["sluice-state"] == "full" and "set-cookie" not in full.headers
    assert one.ticket() == ticket and state(one) == "waiting"


def test_links_that_are_none(start, visitor):
    sluice = start(capacity=1)
    come(visitor, sluice)
    path = link(sluice)
    forged = path[:-4] + ("aaaa" if path[-4:] != "aaaa" else "bbbb")
    common = line(come(visitor, sluice))
    for wrong in (forged, "/derby/?sluice_lane=", "/derby/?sluice_lane=" + "A" * 64):
        assert line(come(visitor, sluice, wrong)) == common
    # Until when it is good.
    soon = link(sluice, str(int(time.time()) + 2))
    assert line(come(visitor, sluice, soon)) != common
    time.sleep(3)
    assert line(come(visitor, sluice, soon)) == common
    assert counted(sluice)["lane_link_over"] == 1
    past = sluice.cli("lane", "link", "derby/sponsors", "2001-01-01T00:00:00Z", check=False)
    assert past.returncode == 1 and "time to come" in past.stderr
    assert sluice.cli("lane", "link", "derby/nobody", check=False).returncode == 1
    link(sluice, "2033-01-01T00:00:00+09:00")
    # A link is no ticket and no pass.
    invitation = path.split("=")[1]
    for header in ("Sluice-Ticket", "Sluice-Pass"):
        one = visitor(sluice, headers=dict(JSON, **{header: invitation}))
        assert one.status().status_code == 401


def test_a_header_of_nobody_trusted(make, visitor):
    sluice = make(rooms=[room(capacity=1, lanes=LANES)], top={"trusted_proxies": ["192.0.2.1"]})
    come(visitor, sluice)
    assert line(come(visitor, sluice, headers=MEMBER)) == line(come(visitor, sluice))
    now = counted(sluice)
    assert now["lane_untrusted"] == 1 and now["lane_by_header"] == 0


def test_an_address_list(make, visitor):
    lanes = [{"name": "staff", "addresses": ["192.0.2.0/24"]}]
    sluice = make(rooms=[room(capacity=1, lanes=lanes)], start=False)
    sluice.start()
    come(visitor, sluice)
    outside = line(come(visitor, sluice))
    lanes[0]["addresses"] = [sluice.peer]
    sluice.write()
    sluice.cli("reload")
    wait_for(lambda: line(come(visitor, sluice)) != outside, 5)
    assert counted(sluice)["lane_by_address"] >= 1


def test_lanes_come_and_go_with_a_reload(start, visitor):
    sluice = start()
    inside = come(visitor, sluice, headers=MEMBER)
    come(visitor, sluice)
    waiting = come(visitor, sluice)
    place = waiting.status().json()["position"]
    rooms = sluice.config["sites"][0]["rooms"]
    rooms[0]["lanes"] = [{"name": "press"}]
    sluice.write()
    sluice.cli("reload")
    # The lane took its slots along, and its passes count as none.
    assert sum(one["sessions"] for one in sluice.show("rooms")) == 1
    assert waiting.status().json()["position"] == place
    holder = visitor(sluice, headers=dict(BROWSER, **{"Sluice-Pass": inside.passed()}))
    assert holder.get("/derby/").headers.get("sluice-state")
    rooms[0]["lanes"] = LANES
    sluice.write()
    sluice.cli("reload")
    assert inside.get("/derby/").text.startswith("shop:")


def test_a_kill_keeps_lanes(start, visitor):
    sluice = start()
    inside = [come(visitor, sluice, headers=MEMBER), come(visitor, sluice)]
    waiting = [come(visitor, sluice, headers=MEMBER), come(visitor, sluice)]
    before = [token(one.ticket())["key"] for one in waiting]
    sluice.kill()
    sluice.start()
    assert all(one.get("/derby/").text.startswith("shop:") for one in inside)
    assert [one.status().json()["position"] for one in waiting] == [1, 1]
    assert [token(one.ticket())["key"] for one in waiting] == before
    assert sum(one["sessions"] for one in sluice.show("rooms")) == 2


def test_the_mode_of_a_room_is_that_of_its_lanes(start, visitor):
    sluice = start(capacity=1, claim="1s")
    inside = come(visitor, sluice)
    member = come(visitor, sluice, headers=MEMBER)
    key = token(member.ticket())["key"]
    sluice.cli("room", "derby", "mode", "reject")
    wait_for(lambda: state(member) == "rejected", 3)
    leave(inside)
    time.sleep(2)
    refused = sluice.cli("room", "derby/members", "pause", check=False)
    assert refused.returncode == 1 and "lane" in refused.stdout + refused.stderr
    sluice.cli("room", "derby", "mode", "auto")
    wait_for(lambda: state(member) == "admitted", 8, 0.3)
    assert token(member.ticket())["key"] == key
