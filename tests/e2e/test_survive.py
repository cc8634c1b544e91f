"""Goal: a place survives everything: kill -9, restart, another worker, a full disk."""
import concurrent.futures
import os
import struct
import time

import pytest
from sluice import JSON, room, token, wait_for, waited_s


def arrive(visitor, sluice, count):
    people = [visitor(sluice) for _ in range(count)]
    for one in people:
        one.get("/derby/")
    return people


@pytest.mark.smoke
def test_kill_keeps_every_token(make, visitor):
    sluice = make(rooms=[room(capacity=2, session="60s")])
    people = arrive(visitor, sluice, 12)
    inside, waiting = people[:2], people[2:]
    before = [one.status().json() for one in waiting]
    keys = [token(one.ticket())["key"] for one in waiting]
    sluice.kill()
    sluice.start()
    for one, was in zip(waiting, before):
        now = one.status().json()
        assert now["position"] == was["position"] and now["ahead"] <= was["ahead"]
        assert now["exact"] is True
    for one in inside:
        assert one.get("/derby/").text.startswith("shop:")
    late = visitor(sluice)
    late.get("/derby/")
    assert token(late.ticket())["key"] > max(keys)
    assert late.status().json()["position"] == 11
    assert sluice.show("room", "derby")["sessions"] == 2


def test_kill_keeps_the_remaining_time_and_capacity(make, visitor):
    sluice = make(rooms=[room(capacity=1, session="6s")])
    inside, waiting = arrive(visitor, sluice, 2)
    ends = token(inside.passed())["expires"]
    sluice.kill()
    sluice.start()
    while time.time() < ends - 1.5:  # a claim is put off by at most half a second
        assert waiting.status().json()["state"] in ("waiting", "next")
        time.sleep(0.3)
    wait_for(lambda: waiting.status().json()["state"] == "admitted", 8, 0.3)


def test_kill_in_the_middle_of_a_crowd(make, visitor):
    """Whatever was handed out before is unique and holds; nobody gets a place twice."""
    sluice = make(rooms=[room(capacity=3)])
    tickets = []

    def draw(_):
        try:
            one = visitor(sluice, timeout=3)
            one.get("/derby/")
            if one.ticket():
                tickets.append((token(one.ticket())["key"], one))
        except Exception:  # cut by the kill
            pass

    for _ in range(3):
        before = len(tickets)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            work = [pool.submit(draw, i) for i in range(60)]
            wait_for(lambda: len(tickets) >= before + 8, 20)
            sluice.kill()
            sluice.start()
            concurrent.futures.wait(work)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(draw, range(20)))
    keys = [key for key, _ in tickets]
    assert len(set(keys)) == len(keys) and len(keys) > 20
    positions = [one.status().json()["position"] for _, one in sorted(tickets, key=lambda t: t[0])]
    live = [p for p in positions if p is not None]
    assert live == sorted(live) and len(set(live)) == len(live)


def test_threshold_does_not_move_back(make, visitor):
    sluice = make(rooms=[room(capacity=1, session="2s", claim="60s")])
    arrive(visitor, sluice, 4)
    wait_for(lambda: int(sluice.show("room", "derby")["threshold"], 16) > 0, 10, 0.2)
    before = int(sluice.show("room", "derby")["threshold"], 16)
    sluice.kill()
    sluice.start()
    assert int(sluice.show("room", "derby")["threshold"], 16) >= before


def test_a_free_slot_does_not_wait_after_kills(make, visitor):
    """Tickets that were used before the kills are not waited for again."""
    sluice = make(rooms=[room(capacity=1, session="60s", claim="30s")])
    people = arrive(visitor, sluice, 5)
    for gone, comes in zip(people, people[1:4]):
        gone.client.post("/.sluice/derby/leave")
        wait_for(lambda: comes.status().json()["state"] == "admitted", 5, 0.2)
    for _ in range(2):
        sluice.kill()
        sluice.start()
    assert people[4].status().json()["state"] in ("waiting", "next")  # and not let in
    people[3].client.post("/.sluice/derby/leave")
    wait_for(lambda: people[4].status().json()["state"] == "admitted", 3, 0.2)


def edit_places(sluice, line_id, kept_until_ms=None):
    """Whether the file of places has a line, and until when it is kept (place.h)."""
    with open(os.path.join(sluice.config["state"], "places"), "r+b") as file:
        lines_max, _, line_bytes = struct.unpack_from("<IQQ", file.read(32), 12)
        for at in range(4096, 4096 + lines_max * line_bytes, line_bytes):
            file.seek(at)
            head = file.read(192)
            if struct.unpack_from("<Q", head, 152) == (0,):
                continue
            if struct.unpack_from("<I", head, 56) != (line_id,):
                continue
            if kept_until_ms is not None:
                file.seek(at + 176)
                file.write(struct.pack("<Q", kept_until_ms))
            return struct.unpack_from("<Q", head, 176)[0]
    return None


def test_the_line_of_a_room_that_is_gone_is_given_back(make, visitor):
    """Once nothing of it can be good; and who returns then has lapsed."""
    cup = room("cup", capacity=1, ticket_ttl="2m", session="5m")
    sluice = make(rooms=[room(), cup])
    rooms = sluice.config["sites"][0]["rooms"]
    for one in (people := [visitor(sluice) for _ in range(3)]):
        one.get("/cup/")
    held = people[2].ticket("cup")
    assert people[2].status("cup").json()["position"] == 2
    del rooms[1]
    sluice.write()
    sluice.cli("reload")
    assert sluice.stop() == 0
    line = token(held)["line"]
    assert 290 < edit_places(sluice, line) / 1000 - time.time() <= 300
    sluice.start()
    assert sluice.stop() == 0
    assert edit_places(sluice, line, int(time.time() * 1000) - 1)  # five minutes later
    sluice.start()
    assert "given back" in sluice.read_log()
    assert edit_places(sluice, line) is None
    rooms.append(cup)
    sluice.write()
    sluice.cli("reload")
    back = visitor(sluice, headers=dict(JSON, **{"Sluice-Ticket": held}))
    assert back.client.get("/.sluice/cup/status").status_code == 410
    late = visitor(sluice)
    late.get("/cup/")
    assert late.status("cup").json()["position"] == 1
    assert token(late.ticket("cup"))["key"] > token(held)["key"]


def test_restart_is_quick(make):
    sluice = make()
    sluice.kill()
    began = time.monotonic()
    sluice.start()
    assert time.monotonic() - began - waited_s(sluice.process.pid) < 2


def test_what_was_given_back_stays_so_after_a_kill(make, visitor):
    """The answer to `leave` is a promise: killed right after it, nothing of it comes back."""
    sluice = make(rooms=[room(capacity=1, session="60s", claim="60s")])
    inside, first, second, last = arrive(visitor, sluice, 4)
    tickets = [one.ticket() for one in (first, second)]
    held = inside.passed()
    gone = [one.client.post("/.sluice/derby/leave") for one in (first, second, inside)]
    sluice.kill()
    assert [answer.status_code for answer in gone] == [204] * 3
    sluice.start()
    derby = sluice.show("room", "derby")
    assert derby["waiting"] + derby["called"] == 1
    wait_for(lambda: last.status().json()["state"] == "admitted", 5, 0.2)
    assert inside.get("/derby/", headers={"Sluice-Pass": held}).text.startswith("shop:") is False
    for ticket in tickets:
        other = visitor(sluice, headers=dict(JSON, **{"Sluice-Ticket": ticket}))
        assert other.client.get("/.sluice/derby/status").status_code == 410


def test_a_claimed_ticket_is_not_used_twice(make, visitor):
    """One ticket is one session, however many tabs claim it, also over a restart."""
    sluice = make(rooms=[room(capacity=2, session="60s", mode="always")])
    one = visitor(sluice)
    one.get("/derby/")
    ticket = one.ticket()
    wait_for(lambda: one.status().json()["state"] == "admitted", 10, 0.3)
    session = token(one.passed())["key"]
    tab = visitor(sluice, headers=dict(JSON, **{"Sluice-Ticket": ticket}))
    again = tab.client.get("/.sluice/derby/status")
    assert again.json()["state"] == "admitted"
    assert token(again.headers["sluice-pass"])["key"] == session
    sluice.kill()
    sluice.start()
    again = tab.client.get("/.sluice/derby/status")
    assert token(again.headers["sluice-pass"])["key"] == session
    assert sluice.show("room", "derby")["sessions"] == 1


def test_cold_files_are_private(make):
    sluice = make()
    for name in os.listdir(sluice.config["state"]):
        mode = os.stat(os.path.join(sluice.config["state"], name)).st_mode & 0o777
        assert mode & 0o077 == 0, (name, oct(mode))
    assert os.stat(sluice.config["state"]).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("what", ["sluice.db"])
def test_a_damaged_store_is_refused_and_left_alone(make, what):
    sluice = make()
    assert sluice.stop() == 0
    path = next(os.path.join(sluice.config["state"], n) for n in os.listdir(sluice.config["state"])
                if "sqlite" in n or n.endswith(".db") or n == "store")
    with open(path, "r+b") as file:
        file.write(b"not a database" * 20)
    damaged = open(path, "rb").read()
    sluice.start(expect_ready=False)
    assert sluice.process.wait(10) == 1
    assert open(path, "rb").read() == damaged


