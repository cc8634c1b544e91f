"""Goal: rooms that share a pool, by class and weight, with their own pages and numbers."""
import time

import pytest
from sluice import room, token, wait_for

pytestmark = pytest.mark.above

POOL = {"pools": [{"name": "shop", "capacity": 2}]}


def share(name, **keys):
    """A room without limits of its own."""
    return dict({"name": name, "path": f"/{name}", "pool": "shop"}, **keys)


def come(visitor, sluice, name):
    one = visitor(sluice)
    one.get(f"/{name}/")
    return one


def state(one, name):
    return one.status(name).json()["state"]


def leave(one, name):
    assert one.client.post(f"/.sluice/{name}/leave").status_code == 204


def inside(sluice):
    return sluice.show("pools")[0]["sessions"]


@pytest.mark.smoke
def test_slots_are_those_of_the_pool(make, visitor):
    sluice = make(rooms=[share("derby"), share("final")], top=POOL)
    first, second = come(visitor, sluice, "derby"), come(visitor, sluice, "final")
    assert first.passed("derby") and second.passed("final")
    waiting = come(visitor, sluice, "final")
    assert not waiting.passed("final")
    told = waiting.status("final").json()
    assert told["room"] == "final" and told["position"] == 1
    assert inside(sluice) == 2
    rooms = {line["room"]: line for line in sluice.show("rooms")}
    assert rooms["derby"]["sessions"] == rooms["final"]["sessions"] == 1
    assert rooms["derby"]["pool"] == "shop"
    # Nobody is overtaken by a newcomer of the other room, not even when a slot is free.
    leave(first, "derby")
    late = come(visitor, sluice, "derby")
    assert not late.passed("derby")
    wait_for(lambda: state(waiting, "final") == "admitted", 8, 0.3)
    assert inside(sluice) == 2


def test_a_pool_of_two_sites(make, visitor, origin):
    other = {"name": "club", "hosts": ["club.example"],
             "origin": {"servers": [f"127.0.0.1:{origin.port}"]}, "rooms": [share("final")]}
    sluice = make(rooms=[share("derby")], top=POOL, start=False)
    sluice.config["sites"].append(other)
    sluice.start()
    for _ in range(2):
        assert come(visitor, sluice, "derby").passed("derby")
    guest = visitor(sluice)
    answer = guest.get("/final/", headers={"Host": "club.example"})
    assert answer.headers["sluice-state"] in ("waiting", "next")
    assert inside(sluice) == 2


def test_the_higher_class_comes_first(make, visitor):
    sluice = make(rooms=[share("derby", priority=2), share("final", priority=1)], top=POOL)
    holders = [come(visitor, sluice, "derby") for _ in range(2)]
    low = [come(visitor, sluice, "derby") for _ in range(3)]
    high = come(visitor, sluice, "final")
    assert all(state(one, "derby") == "waiting" for one in low)
    assert state(high, "final") == "waiting"
    leave(holders[0], "derby")
    wait_for(lambda: [state(one, "derby") for one in low] and
             state(high, "final") == "admitted", 8, 0.3)
    assert all(state(one, "derby") in ("waiting", "next") for one in low)


def test_shares_flow_on_at_once(make, visitor):
    sluice = make(rooms=[share("derby", weight=1), share("final", weight=9)], top=POOL)
    holders = [come(visitor, sluice, "final") for _ in range(2)]
    waiting = [come(visitor, sluice, "derby") for _ in range(2)]
    for one in holders:
        leave(one, "final")
    for one in waiting:
        wait_for(lambda one=one: state(one, "derby") == "admitted", 8, 0.3)
    assert inside(sluice) == 2


def test_the_limits_of_a_room_hold_besides(make, visitor):
    sluice = make(rooms=[share("derby", capacity=1), share("final")], top=POOL)
    assert come(visitor, sluice, "derby").passed("derby")
    assert not come(visitor, sluice, "derby").passed("derby")
    # What derby may not have keeps nobody of the other room waiting.
    assert come(visitor, sluice, "final").passed("final")


def test_reload_of_pools_keeps_places_and_slots(make, visitor):
    sluice = make(rooms=[share("derby"), share("final")], top=POOL)
    holders = [come(visitor, sluice, "derby") for _ in range(2)]
    waiting = [come(visitor, sluice, "derby") for _ in range(2)]
    places = [one.status("derby").json()["position"] for one in waiting]
    sluice.config["pools"] = [{"name": "other", "capacity": 3}, {"name": "shop", "capacity": 1}]
    rooms = sluice.config["sites"][0]["rooms"]
    rooms[0].update(pool="other", priority=2, weight=5)
    sluice.write()
    sluice.cli("reload")
    assert [line["sessions"] for line in sluice.show("pools")] == [2, 0]
    assert [one.status("derby").json()["position"] for one in waiting] == places
    assert all(one.get("/derby/").text.startswith("shop:") for one in holders)
    wait_for(lambda: state(waiting[0], "derby") == "admitted", 8, 0.3)
    assert state(waiting[1], "derby") in ("waiting", "next")
    assert come(visitor, sluice, "final").passed("final")
    # Out of every pool, with limits of its own.
    del rooms[0]["pool"], rooms[0]["priority"], rooms[0]["weight"]
    rooms[0]["capacity"] = 4
    sluice.config["pools"] = []
    del rooms[1]["pool"]
    sluice.write()
    sluice.cli("reload")
    assert sluice.show("pools") == []
    assert sluice.show("room", "derby")["sessions"] == 3
    wait_for(lambda: state(waiting[1], "derby") == "admitted", 8, 0.3)


def test_a_kill_keeps_the_slots_of_a_pool(make, visitor):
    sluice = make(rooms=[share("derby"), share("final")], top=POOL)
    come(visitor, sluice, "derby")
    come(visitor, sluice, "final")
    waiting = come(visitor, sluice, "final")
    was = token(waiting.ticket("final"))["key"]
    sluice.kill()
    sluice.start()
    assert inside(sluice) == 2
    assert not come(visitor, sluice, "derby").passed("derby")
    assert state(waiting, "final") in ("waiting", "next")
    assert token(waiting.ticket("final"))["key"] == was


# --- modes


def fill(make, visitor, **keys):
    sluice = make(rooms=[room(capacity=1, claim="1s", session="1h", **keys)])
    holder, waiting = come(visitor, sluice, "derby"), come(visitor, sluice, "derby")
    assert holder.passed() and waiting.ticket()
    return sluice, holder, waiting


@pytest.mark.parametrize("mode, told", [("reject", "rejected"), ("off", "admitted")])
def test_no_turn_ends_while_nobody_is_let_in(make, visitor, mode, told):
    """A turn lasts a second, and the room is in that mode for longer."""
    sluice, holder, waiting = fill(make, visitor)
    key, place = token(waiting.ticket())["key"], waiting.status().json()["position"]
    leave(holder, "derby")
    sluice.cli("room", "derby", "mode", mode)
    wait_for(lambda: state(waiting, "derby") == told, 3)
    time.sleep(3)
    sluice.cli("room", "derby", "mode", "auto")
    wait_for(lambda: state(waiting, "derby") != told or waiting.passed(), 3)
    assert token(waiting.ticket())["key"] == key
    wait_for(lambda: waiting.status().json()["state"] == "admitted" and waiting.passed(), 8, 0.3)
    assert waiting.status().json()["position"] in (place, None)
    assert sluice.show("room", "derby")["lapsed"] == 0


def test_always_lets_nobody_in_without_a_place(make, visitor):
    sluice = make(rooms=[room(capacity=5, mode="always")])
    one = come(visitor, sluice, "derby")
    assert one.ticket() and not one.passed()
    wait_for(lambda: state(one, "derby") == "admitted", 5, 0.3)
    sluice.cli("room", "derby", "mode", "auto")

    def next_is_let_in_at_once():
        newcomer = come(visitor, sluice, "derby")
        if newcomer.passed():
            return True
        # A machine that is slow to commit queues newcomers: nobody is to wait behind this one.
        wait_for(lambda: state(newcomer, "derby") == "admitted", 8, 0.3)
        leave(newcomer, "derby")
        return False

    wait_for(next_is_let_in_at_once, 20)


def early_in_a_minute(seconds):
    """Wait for a moment with so many seconds of its minute to come."""
    left = 60 - time.time() % 60
    if left < seconds:
        time.sleep(left + 0.1)


def test_peak_queues_the_next_of_a_minute(make, visitor):
    sluice = make(rooms=[room(capacity=100, mode="peak", inflow="5/min", rate="1/s", burst=100)])
    early_in_a_minute(10)
    people = [come(visitor, sluice, "derby") for _ in range(6)]
    assert [bool(one.passed()) for one in people] == [True] * 5 + [False]
    told = sluice.show("room", "derby")
    assert told["direct"] == 5 and told["inflow_left"] == 0 and told["batch_left"] is None
    now = {one["counter"]: one["value"] for one in sluice.show("counters")}
    assert now["peak_direct"] == 5 and now["peak_queued"] == 1
    # The line has a rate of its own.
    wait_for(lambda: state(people[5], "derby") == "admitted", 8, 0.3)
    assert not come(visitor, sluice, "derby").passed()
    # A kill in the same minute does not begin it anew.
    sluice.kill()
    sluice.start()
    assert not come(visitor, sluice, "derby").passed()


def test_peak_without_a_rate_lets_the_waiting_in_first(make, visitor):
    sluice = make(rooms=[room(capacity=100, mode="peak", inflow="3/min")])
    early_in_a_minute(12)
    people = [come(visitor, sluice, "derby") for _ in range(5)]
    assert [bool(one.passed()) for one in people] == [True] * 3 + [False] * 2
    time.sleep(3)
    assert [state(one, "derby") in ("waiting", "next") for one in people[3:]] == [True] * 2
    # Another mode, and back: nobody has lost the place.
    before = [token(one.ticket())["key"] for one in people[3:]]
    sluice.cli("room", "derby", "mode", "always")
    sluice.cli("room", "derby", "mode", "peak")
    assert [token(one.ticket())["key"] for one in people[3:]] == before
    assert sluice.cli("room", "derby", "mode", "auto").returncode == 0
    for one in people[3:]:
        wait_for(lambda one=one: state(one, "derby") == "admitted", 10, 0.3)


def test_peak_needs_an_inflow(make, visitor):
    sluice = make(rooms=[room()])
    refused = sluice.cli("room", "derby", "mode", "peak", check=False)
    assert refused.returncode == 1 and "inflow" in refused.stdout + refused.stderr


def test_batches(make, visitor):
    sluice = make(rooms=[room(capacity=100, mode="always", batch="2 every 5s")])
    time.sleep(5 - time.time() % 5 + 0.2)
    people = [come(visitor, sluice, "derby") for _ in range(6)]
    at = {}
    until = time.monotonic() + 14
    while len(at) < 6 and time.monotonic() < until:
        for i, one in enumerate(people):
            if i not in at and state(one, "derby") == "admitted":
                at[i] = time.time()
        time.sleep(0.2)
    batches = [int(at[i] // 5) for i in range(6)]
    assert batches[0] == batches[1] and batches[2] == batches[3] and batches[4] == batches[5]
    assert batches[2] == batches[0] + 1 and batches[4] == batches[2] + 1


def test_a_batch_may_be_spread(make, visitor):
    sluice = make(rooms=[room(capacity=100, mode="always", batch="5 every 5s",
                              batch_spread=True)])
    people = [come(visitor, sluice, "derby") for _ in range(4)]
    begin, at = time.monotonic(), []
    while len(at) < 4 and time.monotonic() < begin + 10:
        at += [time.monotonic() for one in people[len(at):len(at) + 1]
               if state(one, "derby") == "admitted"]
        time.sleep(0.1)
    assert len(at) == 4 and at[3] - at[0] > 2
