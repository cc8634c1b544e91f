"""Goal: doors open once, and whoever gathered before them gets a place at random that anybody can
check; nothing that happens to the process changes it."""
import concurrent.futures
import datetime
import hashlib
import hmac
import pathlib
import re
import struct
import subprocess
import sys
import time

import pytest
from sluice import BINARY, JSON, room, token, wait_for

pytestmark = pytest.mark.above

MANUAL = pathlib.Path(__file__).resolve().parents[2] / "docs" / "manual" / "draws.md"
GATHERED = 1  # flag of a token


def moment(seconds):
    """So many seconds from now, as the configuration wants it; and as unix seconds."""
    at = int(time.time() + seconds)
    zone = datetime.timezone(datetime.timedelta(hours=9))
    return datetime.datetime.fromtimestamp(at, zone).isoformat(), at


def doors(**keys):
    """Doors that open later than any test takes; until open_soon()."""
    return room(**dict({"capacity": 2, "opens": moment(3600)[0], "prequeue": "2h"}, **keys))


def open_soon(sluice, seconds=2):
    """Move the opening; returns when it is, in unix seconds."""
    opens, at = moment(seconds)
    sluice.config["sites"][0]["rooms"][0]["opens"] = opens
    sluice.write()
    sluice.cli("reload")
    return at


def gather(visitor, sluice, count):
    people = [visitor(sluice) for _ in range(count)]
    for one in people:
        wait_for(lambda one=one: one.get("/derby/").headers["Sluice-State"] == "prequeue"
                 and one.ticket(), 5, 0.1)
    return people


def draw_of(one):
    return one.client.get("/.sluice/derby/draw").json()


def hash_of(draw, ticket):
    key = bytes.fromhex(draw["seed"]) + bytes.fromhex(draw["salt"] or "")
    return hmac.new(key, token(ticket)["visitor"].to_bytes(8, "big"), "sha256").digest()[:8]


def states(people):
    return [one.status().json() for one in people]


def wait_for_draw(one, seconds=10):
    return wait_for(lambda: draw_of(one)["seed"] and draw_of(one), seconds, 0.05)


@pytest.mark.smoke
def test_gathered_are_drawn_and_late_ones_stand_behind(make, visitor):
    sluice = make(rooms=[doors(capacity=2)])
    people = gather(visitor, sluice, 20)
    first = people[0]
    commitment = draw_of(first)["commitment"]
    assert draw_of(first)["seed"] is None and draw_of(first)["count"] is None
    assert first.client.get("/.sluice/derby/draw/keys").status_code == 404
    early = [one.ticket() for one in people]
    at = open_soon(sluice, 4)
    for one in people:
        status = one.status().json()
        assert status["state"] == "prequeue" and status["opens"] == at
        assert status["position"] is None and status["ahead"] is None
        assert token(one.ticket())["flags"] == GATHERED
    draw = wait_for_draw(first)
    assert time.time() >= at + 1
    assert hashlib.sha256(bytes.fromhex(draw["seed"])).hexdigest() == commitment
    assert draw["commitment"] == commitment and draw["count"] == 20 and draw["salt"] is None

    late = [visitor(sluice) for _ in range(3)]
    for one in late:
        one.get("/derby/")
    keys = first.client.get("/.sluice/derby/draw/keys").text
    assert hashlib.sha256(keys.encode()).hexdigest() == draw["list_sha256"]
    lines = keys.split()
    assert lines == sorted(lines) and len(lines) == 20
    places = {}
    for one, ticket in zip(people, early):
        expected = lines.index(hash_of(draw, ticket).hex()) + 1
        status = one.status().json()
        assert status["position"] == expected and status["exact"] is True
        if status["state"] == "waiting":
            assert token(one.ticket())["flags"] == 0
            assert token(one.ticket())["visitor"] == token(ticket)["visitor"]
        places[expected] = status["state"]
    assert sorted(places) == list(range(1, 21))
    assert [one.status().json()["position"] for one in late] == [21, 22, 23]
    wait_for(lambda: sum(one["state"] == "admitted" for one in states(people)) == 2, 10, 0.2)
    assert sluice.show("room", "derby")["sessions"] == 2
    counted = {line["counter"]: line["value"] for line in sluice.show("counters")
               if line["part"] == "worker"}
    assert counted["gathered"] == 20 and counted["tickets"] == 23 and counted["draws"] >= 2
    inside = [one for one in people if one.passed()]
    assert sorted(lines.index(hash_of(draw, ticket).hex()) + 1
                  for one, ticket in zip(people, early) if one in inside) == [1, 2]


def test_an_old_ticket_keeps_working(make, visitor):
    sluice = make(rooms=[doors(capacity=1)])
    people = gather(visitor, sluice, 5)
    early = [one.ticket() for one in people]
    open_soon(sluice)
    wait_for_draw(people[0])
    before = [one.status().json()["position"] for one in people]
    plain = visitor(sluice, headers=JSON)
    for ticket, place in zip(early, before):
        answer = plain.client.get("/.sluice/derby/status", headers={"Sluice-Ticket": ticket})
        assert answer.json()["position"] == place
        if answer.json()["state"] == "waiting":
            assert token(answer.headers["Sluice-Ticket"])["flags"] == 0


@pytest.mark.parametrize("when", ["before", "at", "after"])
def test_kill_changes_nobodys_place(make, visitor, when):
    sluice = make(rooms=[doors(capacity=1)])
    people = gather(visitor, sluice, 15)
    commitment = draw_of(people[0])["commitment"]
    tickets = [one.ticket() for one in people]
    at = open_soon(sluice, 3)
    if when == "at":
        time.sleep(max(0, at + 1 - time.time()))  # the list is being closed and drawn
    if when == "after":
        wait_for_draw(people[0])
    was = [one.status().json()["position"] for one in people] if when == "after" else None
    sluice.kill()
    sluice.start()
    draw = wait_for_draw(people[0])
    assert time.time() >= at + 1  # a start opens nothing
    assert draw["commitment"] == commitment and draw["count"] == 15
    lines = people[0].client.get("/.sluice/derby/draw/keys").text.split()
    now = [one.status().json()["position"] for one in people]
    assert now == [lines.index(hash_of(draw, ticket).hex()) + 1 for ticket in tickets]
    assert was is None or now == was
    late = visitor(sluice)
    late.get("/derby/")
    assert late.status().json()["position"] == 16
    sluice.kill()
    sluice.start()
    assert [one.status().json()["position"] for one in people] == now
    assert draw_of(people[0]) == draw


class Clock:
    """The system's clock as sluice reads it (clock_shim.c)."""

    def __init__(self, sluice):
        self.file = sluice.folder / "clock"
        self.step(0)
        shim = pathlib.Path(BINARY).parent / "tests" / "clock_shim.so"
        assert shim.exists()
        sluice.command = ["env", f"LD_PRELOAD={shim}", f"CLOCK_SHIM={self.file}", *sluice.command]

    def step(self, ahead_s):
        with open(self.file, "r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("=q", ahead_s))


def test_a_clock_that_steps_opens_the_doors_once(make, visitor):
    """And the list stays open for a second: who comes within it is drawn with the others."""
    sluice = make(rooms=[doors(capacity=1)], start=False)
    clock = Clock(sluice)
    sluice.start()
    people = gather(visitor, sluice, 3)
    at = open_soon(sluice, 4)
    clock.step(3600)  # the doors are not to open an hour early
    while time.time() < at - 0.3:
        assert people[0].status().json()["state"] == "prequeue"
        time.sleep(0.2)
    clock.step(-1)  # a leap second, told twice
    wait_for(lambda: sluice.show("room", "derby")["opens"] and time.time() > at + 0.3, 5)
    last = visitor(sluice)
    last.get("/derby/")
    if token(last.ticket())["flags"] == GATHERED:
        people.append(last)
    else:  # this machine took longer than that second
        assert time.time() >= at + 1
    clock.step(-7200)  # nor to close again, and to open in two hours
    draw = wait_for_draw(people[0])
    assert time.time() >= at + 1 and draw["count"] == len(people)
    late = visitor(sluice)
    late.get("/derby/")
    assert late.status().json()["position"] > len(people)
    places = [one.status().json()["position"] for one in people]
    assert sorted(places) == list(range(1, len(people) + 1))
    sluice.kill()
    sluice.start()  # by a clock that is behind all that has been
    assert [one.status().json()["position"] for one in people] == places
    assert draw_of(people[0]) == draw and sluice.show("room", "derby")["state"] == "open"


def test_before_anybody_gathers(make, visitor):
    opens, at = moment(3600)
    sluice = make(rooms=[doors(opens=opens, prequeue="10m")])
    one = visitor(sluice)
    answer = one.get("/derby/")
    assert answer.headers["Sluice-State"] == "prequeue" and one.ticket() is None
    assert "0:59:" in answer.text or "1:00:00" in answer.text
    status = one.client.get("/derby/", headers=JSON).json()
    assert status["state"] == "prequeue" and status["opens"] == at and status["position"] is None
    assert status["gathers"] == at - 600
    assert one.status().status_code == 401
    # The seed's hash is known long before: as soon as the store has the seed.
    wait_for(lambda: "commitment" in draw_of(one), 5)
    assert draw_of(one)["seed"] is None


def test_doors_without_a_gathering(make, visitor):
    sluice = make(rooms=[doors(prequeue=0, capacity=5)])
    one = visitor(sluice)
    assert one.get("/derby/").headers["Sluice-State"] == "prequeue" and one.ticket() is None
    assert one.client.get("/derby/", headers=JSON).json()["gathers"] is None
    sluice.config["sites"][0]["rooms"][0]["closes"] = moment(6)[0]
    open_soon(sluice)
    wait_for(lambda: one.get("/derby/").text.startswith("shop:"), 5, 0.1)
    wait_for(lambda: visitor(sluice).get("/derby/").headers.get("Sluice-State") == "closed", 9, 0.1)
    assert one.get("/derby/").text.startswith("shop:")  # until the pass runs out
    assert sluice.show("room", "derby")["state"] == "closed"


def test_opened_and_closed_by_command(make, visitor):
    sluice = make(rooms=[doors(capacity=1)])
    people = gather(visitor, sluice, 4)
    sluice.cli("room", "derby", "salt", "C0ffee")
    assert draw_of(people[0])["salt"] == "c0ffee"
    sluice.cli("room", "derby", "open")
    draw = wait_for_draw(people[0], 4)
    assert draw["salt"] == "c0ffee" and draw["count"] == 4
    lines = people[0].client.get("/.sluice/derby/draw/keys").text.split()
    assert sorted(one.status().json()["position"] for one in people) == [1, 2, 3, 4]
    assert {hash_of(draw, one.ticket() or one.passed()).hex() for one in people} == set(lines)
    sluice.cli("room", "derby", "close")
    assert visitor(sluice).get("/derby/").headers["Sluice-State"] == "closed"
    sluice.kill()
    sluice.start()
    assert visitor(sluice).get("/derby/").headers["Sluice-State"] == "closed"
    sluice.cli("room", "derby", "open")
    assert visitor(sluice).get("/derby/").headers["Sluice-State"] == "waiting"
    bad = sluice.cli("room", "derby", "salt", "xyz", check=False)
    assert bad.returncode == 1 and "hex" in bad.stdout + bad.stderr


def test_verify(make, visitor):
    sluice = make(rooms=[doors(capacity=1)])
    people = gather(visitor, sluice, 6)
    early = [one.ticket() for one in people]
    undrawn = sluice.cli("draw", "verify", early[0], check=False)
    assert undrawn.returncode == 1 and "not drawn" in undrawn.stdout + undrawn.stderr
    open_soon(sluice)
    wait_for_draw(people[0])
    said = sluice.cli("draw", "verify", *early).stdout
    for one in people:
        assert f"place {one.status().json()['position']} of 6" in said
    late = [one.ticket() for one in people if one.status().json()["state"] == "waiting"]
    assert sluice.cli("draw", "verify", *late).stdout.count(" of 6") == len(late)
    altered = early[0][:40] + ("A" if early[0][40] != "A" else "B") + early[0][41:]
    assert sluice.cli("draw", "verify", altered, check=False).returncode == 1


@pytest.mark.sockets  # the lines know nothing of namespaces
def test_the_lines_of_the_manual(make, visitor):
    lines = re.search(r"```python\n(.*?)```", MANUAL.read_text(), re.S).group(1)
    assert len([line for line in lines.splitlines() if line.strip()]) <= 20
    sluice = make(rooms=[doors(capacity=1, salt="00c0ffee")])
    people = gather(visitor, sluice, 7)
    early = [one.ticket() for one in people]
    open_soon(sluice)
    wait_for_draw(people[0])
    for one, ticket in zip(people, early):
        said = subprocess.run([sys.executable, "-c", lines, sluice.url("/.sluice/derby"), ticket],
                              capture_output=True, text=True, check=True, timeout=20).stdout
        assert said == f"place {one.status().json()['position']} of 7\n"


def test_tickets_of_another_opening_count_as_none(make, visitor):
    again, again_at = moment(7200)
    events = [{"opens": again, "prequeue": 0},
              {"opens": moment(3600)[0], "closes": moment(7000)[0], "prequeue": "2h",
               "capacity": 2, "message": "the first"}]
    sluice = make(rooms=[room(capacity=1, events=events)])
    people = gather(visitor, sluice, 5)
    assert "the first" in people[0].get("/derby/").text
    early = people[0].ticket()
    sluice.cli("room", "derby", "open")
    wait_for_draw(people[0])
    assert sluice.show("room", "derby")["capacity"] == 2
    wait_for(lambda: sum(one["state"] == "admitted" for one in states(people)) == 2, 8, 0.2)
    late = visitor(sluice)
    assert late.get("/derby/").headers["Sluice-State"] == "waiting"
    events[1]["closes"] = moment(1)[0]
    events[1]["opens"] = moment(-5)[0]
    events[0]["prequeue"] = f"{again_at - int(time.time()) - 2}s"
    sluice.write()
    sluice.cli("reload")
    wait_for(lambda: late.get("/derby/").headers["Sluice-State"] == "prequeue"
             and late.ticket(), 8, 0.1)
    assert sluice.show("room", "derby")["capacity"] == 1
    assert token(late.ticket())["flags"] == GATHERED
    plain = visitor(sluice, headers=JSON)
    answer = plain.client.get("/.sluice/derby/status", headers={"Sluice-Ticket": early})
    assert answer.status_code == 410
    draw = draw_of(late)
    assert draw["seed"] is None and draw["gathering"] == token(late.ticket())["key"]


def test_an_event_overrides_its_room(make, visitor):
    """Capacity, session, order, mode and pages are the event's from its opening to its closing."""
    events = [{"name": "gala", "opens": moment(-5)[0], "closes": moment(3600)[0], "capacity": 3,
               "session": "90s", "order": "window", "window": 2, "mode": "always", "pages": "gala",
               "rate": "600/min"},
              {"opens": moment(7200)[0]}]
    sluice = make(rooms=[room(capacity=1, events=events)], start=False)
    (sluice.folder / "gala").mkdir()
    (sluice.folder / "gala" / "page.html").write_text(
        "<!doctype html><title>GALA</title><p>{{state}}</p>{{>sluice_refresh}}{{>sluice_script}}")
    sluice.start()
    people = [visitor(sluice) for _ in range(3)]
    assert all("GALA" in one.get("/derby/").text for one in people)
    now = sluice.show("room", "derby")
    assert (now["event"], now["mode"], now["capacity"]) == ("gala", "always", 3)
    assert now["order"] == "window" and now["opens"] == now["gathers"] < time.time()
    wait_for(lambda: all(one["state"] == "admitted" for one in states(people)), 20, 0.3)
    assert draw_of(people[0])["count"] >= 1  # by windows, as the event wants it
    assert all(token(one.passed())["expires"] < time.time() + 92 for one in people)
    events[0]["closes"] = moment(1)[0]
    sluice.write()
    sluice.cli("reload")
    newcomer = visitor(sluice)
    wait_for(lambda: newcomer.get("/derby/").headers.get("Sluice-State") == "prequeue", 8, 0.1)
    assert "GALA" not in newcomer.get("/derby/").text
    now = sluice.show("room", "derby")
    assert (now["event"], now["mode"], now["capacity"]) == (None, "auto", 1)
    assert now["order"] == "arrival"
    assert people[0].get("/derby/").text.startswith("shop:")  # its pass is good to its end


def test_a_gathering_that_is_full(make, visitor):
    sluice = make(rooms=[doors()], top={"gathered_max": 3})
    gather(visitor, sluice, 3)
    one = visitor(sluice)
    assert one.get("/derby/").headers["Sluice-State"] == "full" and one.ticket() is None
    assert sum(line["value"] for line in sluice.show("counters")
               if line["counter"] == "full") == 1


def test_leaving_a_gathering(make, visitor):
    sluice = make(rooms=[doors()])
    one = gather(visitor, sluice, 1)[0]
    assert one.client.post("/.sluice/derby/leave").status_code == 204
    assert one.ticket() is None


def test_a_list_longer_than_any_answer(make, visitor):
    sluice = make(rooms=[doors(capacity=1)])
    one = gather(visitor, sluice, 1)[0]

    def join(_):
        got = sluice.raw(b"GET /derby/ HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n"
                         b"Connection: keep-alive\r\n\r\n" * 40
                         + b"GET /derby/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return got.count(b"Sluice-State: prequeue")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        joined = 1 + sum(pool.map(join, range(80)))
    assert joined > 3000
    open_soon(sluice)
    draw = wait_for_draw(one, 15)
    assert draw["count"] == joined
    got = sluice.raw(b"GET /.sluice/derby/draw/keys HTTP/1.1\r\nHost: localhost\r\n\r\n"
                     b"GET /.sluice/derby/draw HTTP/1.1\r\nHost: localhost\r\n"
                     b"Connection: close\r\n\r\n", seconds=10)
    head, _, rest = got.partition(b"\r\n\r\n")
    assert f"Content-Length: {17 * joined}".encode() in head
    body, then = rest[:17 * joined], rest[17 * joined:]
    assert hashlib.sha256(body).hexdigest() == draw["list_sha256"]
    assert then.startswith(b"HTTP/1.1 200")  # what was sent behind is answered behind


def test_windows_by_time(make, visitor):
    """Who comes within a window is placed at random behind all before it, before all after it."""
    sluice = make(rooms=[room(capacity=1, order="window", window="3s", mode="always")])
    first = [visitor(sluice) for _ in range(6)]
    for one in first:
        one.get("/derby/")
    status = first[0].status().json()
    assert status["state"] in ("waiting", "next", "admitted")
    if status["state"] == "waiting" and status["position"] is None:
        assert status["ahead"] is None and status["ahead_min"] >= 0
    wait_for(lambda: all(one.status().json()["position"] for one in first), 10, 0.2)
    second = [visitor(sluice) for _ in range(6)]
    for one in second:
        one.get("/derby/")
    wait_for(lambda: all(one.status().json()["position"] for one in second), 10, 0.2)
    places = [one.status().json()["position"] for one in first + second]
    assert sorted(places) == list(range(1, 13))
    assert max(places[:6]) == 6
    draw = draw_of(second[0])
    assert draw["seed"] and draw["next"]["commitment"]
    sluice.kill()
    sluice.start()
    assert [one.status().json()["position"] for one in first + second] == places


def test_windows_by_number_close_when_a_slot_is_free(make, visitor):
    sluice = make(rooms=[room(capacity=3, order="window", window=1000, window_max="1h",
                              mode="always")])
    people = [visitor(sluice) for _ in range(3)]
    for one in people:
        one.get("/derby/")
    wait_for(lambda: all(one.status().json()["state"] == "admitted" for one in people), 20, 0.3)


def test_windows_by_number_close_when_so_many_have_come(make):
    sluice = make(rooms=[room(capacity=1, order="window", window=10, window_max="1h",
                              mode="always")])
    wait_for(lambda: sluice.show("room", "derby")["gathering"], 10, 0.1)

    def join(count):
        for _ in range(count):
            sluice.raw(b"GET /derby/ HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n"
                       b"Connection: close\r\n\r\n")

    def drawn():
        now = sluice.show("room", "derby")
        return now["draws"], now["drawn"]

    join(1)  # a slot is free: it waits for nobody
    wait_for(lambda: drawn() == (1, 1), 10, 0.05)
    for windows in range(1, 4):
        join(9)
        assert drawn() == (windows, 10 * windows - 9)
        join(1)
        wait_for(lambda: drawn() == (windows + 1, 10 * windows + 1), 10, 0.05, drawn)


def test_order_switches_and_nobody_loses_a_place(make, visitor):
    sluice = make(rooms=[room(capacity=1)])
    people = [visitor(sluice) for _ in range(5)]
    for one in people:
        one.get("/derby/")
    waiting = people[1:]
    before = [one.status().json()["position"] for one in waiting]
    the_room = sluice.config["sites"][0]["rooms"][0]
    the_room.update(order="window", window="2s")
    sluice.write()
    sluice.cli("reload")
    wait_for(lambda: draw_of(waiting[0]).get("commitment"), 5, 0.1)
    drawn = [visitor(sluice) for _ in range(4)]
    for one in drawn:
        one.get("/derby/")
    assert [one.status().json()["position"] for one in waiting] == before
    the_room.update(order="arrival")
    sluice.write()
    sluice.cli("reload")
    wait_for(lambda: all(one.status().json()["position"] for one in drawn), 8, 0.2)
    late = visitor(sluice)
    late.get("/derby/")
    assert late.status().json()["position"] == 9
    assert sorted(one.status().json()["position"] for one in drawn) == [5, 6, 7, 8] \
        or max(one.status().json()["position"] for one in drawn) <= 8
    assert [one.status().json()["position"] for one in waiting] == before
