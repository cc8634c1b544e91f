"""Goal: a draw over several appliances is one draw: who gathers anywhere has the same place
everywhere, anybody can check it on any of them, and nobody who falls changes it.

Three appliances and a real Redis, as in test_cluster.py. Each story has a room of its own; what
breaks something comes last.
"""
import contextlib
import hashlib
import re
import subprocess
import sys
import time

import pytest
from sluice import JSON, Visitor, room, token, wait_for
from test_cluster import Cluster, Wanderer
from test_draw import GATHERED, MANUAL, hash_of, moment

pytestmark = [pytest.mark.sockets, pytest.mark.xdist_group("cluster draws")]


def doors(name, **keys):
    """Doors that open when a command says so."""
    return room(name, **dict({"opens": moment(3600)[0], "prequeue": "2h", "capacity": 2,
                              "claim": "1h"}, **keys))


ROOMS = [
    doors("derby"),
    doors("fallen", capacity=3),
    doors("leaving", capacity=3),
    doors("lost", capacity=1),
    doors("killed", capacity=1),
    doors("salted", claim="3s", capacity=1),
    room("window", mode="always", order="window", window="2s", capacity=1),
    room("number", mode="always", order="window", window=4, window_max="60s", capacity=1),
]


@pytest.fixture(scope="module")
def cluster():
    made = Cluster()
    plain = made.make
    fans = doors("fans", lanes=[{"name": "members", "codes": str(made.codes)}])
    made.make = lambda name, rooms=None, key=None: plain(name, rooms or [*ROOMS, fans], key)
    try:
        yield made.start()
    finally:
        made.destroy()


def draw_of(sluice, name, what=""):
    with contextlib.closing(Visitor(sluice, headers=JSON)) as one:
        return one.get(f"/.sluice/{name}/draw{what}")


def draws(cluster, name):
    """What each of the appliances says of the draw, byte for byte."""
    return {draw_of(sluice, name).content for sluice in cluster.all()}


def gather(cluster, name, count):
    """People who come to one appliance after the other; they hold a ticket without a place."""
    people = [Wanderer(cluster, name, i) for i in range(count)]
    for i, one in enumerate(people):
        sluice = cluster.all()[i % len(cluster.all())]
        wait_for(lambda: one.get(sluice=sluice).headers["Sluice-State"] == "prequeue"
                 and one.ticket, 10, 0.1, otherwise=cluster.describe)
        assert token(one.ticket)["flags"] == GATHERED
    return people


def wait_for_draw(cluster, name, seconds=10):
    def drawn():
        said = draws(cluster, name)
        return len(said) == 1 and b'"seed":null' not in said.copy().pop()
    wait_for(drawn, seconds, 0.05, otherwise=cluster.describe)
    return draw_of(cluster.all()[0], name).json()


def check_places(cluster, name, people, tickets, draw):
    """The list is the same everywhere, and each has the place that follows from it on each."""
    keys = {draw_of(sluice, name, "/keys").content for sluice in cluster.all()}
    assert len(keys) == 1
    body = keys.pop()
    assert hashlib.sha256(body).hexdigest() == draw["list_sha256"]
    lines = body.decode().split()
    assert lines == sorted(lines) and len(lines) == draw["count"] == len(tickets)
    places = {}
    for one, ticket in zip(people, tickets):
        place = lines.index(hash_of(draw, ticket).hex()) + 1
        for sluice in cluster.all():
            status = one.status(sluice)
            assert status["position"] == place, (status, place)
        places[place] = one
    assert sorted(places) == list(range(1, len(people) + 1))
    return places


def test_one_draw_over_all(cluster):
    """Gather on three, open on one: one list, one order; late-comers stand behind."""
    name = "derby"
    before = wait_for(lambda: (lambda d: len(d) == 1 and d.pop())(draws(cluster, name)), 5)
    assert b'"seed":null' in before and b'"count":null' in before
    people = gather(cluster, name, 12)
    for sluice in cluster.all():  # wherever they ask, they gather
        for one in people[:3]:
            status = one.status(sluice)
            assert status["state"] == "prequeue" and status["position"] is None
    tickets = [one.ticket for one in people]
    wait_for(lambda: len(draws(cluster, name)) == 1, 3)
    cluster.all()[1].cli("room", name, "open")
    draw = wait_for_draw(cluster, name)
    commitment = draw["commitment"]
    assert commitment.encode() in before
    assert hashlib.sha256(bytes.fromhex(draw["seed"])).hexdigest() == commitment
    late = [Wanderer(cluster, name, i) for i in range(3)]
    for one in late:
        wait_for(lambda: one.get().headers.get("Sluice-State") == "waiting", 10, 0.1)
        time.sleep(0.3)
    places = check_places(cluster, name, people, tickets, draw)
    assert [wait_for(lambda: one.status()["position"], 5) for one in late] == [13, 14, 15]
    wait_for(lambda: all(places[i].status()["state"] == "admitted" for i in (1, 2)), 15, 0.3,
             otherwise=cluster.describe)
    assert not any(places[i].passed for i in range(3, 13))


def test_who_leaves_is_not_called(cluster):
    """On another appliance than they came to, and before the draw: no turn is spent on them."""
    name = "leaving"
    people = gather(cluster, name, 9)
    tickets = [one.ticket for one in people]
    gone, rest = people[:5], people[5:]
    for i, one in enumerate(gone):
        assert one.leave(cluster.all()[(i + 1) % 3]).status_code == 204 and one.ticket is None
    plain = Wanderer(cluster, name)
    for sluice in cluster.all():
        wait_for(lambda: plain.get(f"/.sluice/{name}/status", sluice,
                                   headers={"Sluice-Ticket": tickets[0], **JSON}).status_code
                 == 410, 3, 0.1)
    cluster.all()[2].cli("room", name, "open")
    draw = wait_for_draw(cluster, name)
    assert draw["count"] == 9
    keys = draw_of(cluster.all()[1], name, "/keys").text.split()
    order = sorted(rest, key=lambda one: keys.index(
        hash_of(draw, tickets[people.index(one)]).hex()))
    wait_for(lambda: [one.status()["state"] for one in order].count("admitted") == 3, 15, 0.3,
             otherwise=cluster.describe)
    assert all(one.passed for one in order[:3]) and not order[3].passed
    wait_for(lambda: (lambda now: now["sessions"] == 3 and now["called"] <= 1
                      and now["waiting"] <= 1)(cluster.all()[0].show("room", name)), 4, 0.3)


def test_windows_by_time(cluster):
    """One behind another: whoever comes later stands behind, whichever appliance it is."""
    name = "window"
    enter = Wanderer(cluster, name)
    wait_for(lambda: enter.status()["state"] if enter.get() and enter.ticket else None, 10, 0.2)
    rounds = []
    for _ in range(2):
        people = [Wanderer(cluster, name, i) for i in range(6)]
        for one in people:
            one.get()
            assert one.ticket
        rounds.append(people)
        time.sleep(2.5)
    everybody = [one for people in rounds for one in people]
    for one in everybody:
        wait_for(lambda one=one: one.status()["position"], 12, 0.2, otherwise=cluster.describe)
    places = [[one.status()["position"] for one in people] for people in rounds]
    assert len({place for some in places for place in some}) == 12
    assert max(places[0]) < min(places[1])
    for sluice in cluster.all():
        assert [[one.status(sluice)["position"] for one in people] for people in rounds] == places


def test_windows_by_number(cluster):
    """The people of all appliances fill a window."""
    name = "number"
    enter = Wanderer(cluster, name)
    wait_for(lambda: enter.status()["state"] if enter.get() and enter.ticket else None, 10, 0.2)
    people = [Wanderer(cluster, name, i) for i in range(9)]
    for one in people:
        one.get()
        assert one.ticket
    wait_for(lambda: sum(one.status()["position"] is not None for one in people) >= 4, 15, 0.3,
             otherwise=cluster.describe)


def test_a_salt_is_named_for_all(cluster):
    """On one appliance, for those who gather on any; and a new one knows the last draw."""
    name = "salted"
    people = gather(cluster, name, 6)
    tickets = [one.ticket for one in people]
    cluster.all()[0].cli("room", name, "salt", "0badcafe")
    wait_for(lambda: all(draw_of(s, name).json()["salt"] == "0badcafe" for s in cluster.all()), 5)
    time.sleep(0.5)
    refused = cluster.all()[2].cli("room", name, "salt", "02", check=False)
    assert refused.returncode == 1 and "0badcafe was named" in refused.stdout + refused.stderr
    cluster.all()[0].cli("room", name, "open")
    draw = wait_for_draw(cluster, name)
    assert draw["salt"] == "0badcafe" and draw["count"] == 6
    check_places(cluster, name, people, tickets, draw)
    assert set(program(cluster, name, tickets[0])) == {
        f"place {people[0].status()['position']} of 6\n"}
    said = {s.cli("draw", "verify", *tickets).stdout for s in cluster.all()}
    assert len(said) == 1 and said.pop().count(" of 6") == 6
    fresh = cluster.make("a4").start(expect_ready=False)
    cluster.at["a4"] = fresh
    try:
        wait_for(fresh.is_ready, 20, otherwise=fresh.read_log)
        cluster.wait_whole()
        wait_for(lambda: len(draws(cluster, name)) == 1, 10, 0.1, otherwise=cluster.describe)
        assert draw_of(fresh, name).json() == draw
        assert hashlib.sha256(draw_of(fresh, name, "/keys").content).hexdigest() == \
            draw["list_sha256"]
        assert [one.status(fresh)["position"] for one in people] == [
            one.status(cluster.all()[0])["position"] for one in people]
    finally:
        del cluster.at["a4"]
        fresh.stop()
        fresh.destroy()


def test_codes_lead_into_a_lanes_draw(cluster):
    """Who has shown a code gathers in the lane, and has the same place of it everywhere."""
    name = "fans"
    people = gather(cluster, name, 3)
    a, b, c = cluster.all()
    assert people[0].code("7GQX-4TRM", a).status_code == 200
    assert people[1].code("K2M9-XW7P", b).status_code == 200
    assert people[2].code("7GQX-4TRM", c).json()["reason"] == "code_spent"
    lane = [one.ticket for one in people[:2]]
    assert len({token(ticket)["line"] for ticket in lane}) == 1
    assert token(lane[0])["line"] != token(people[2].ticket)["line"]
    assert all(token(ticket)["flags"] == GATHERED for ticket in lane)
    time.sleep(0.5)
    a.cli("room", name, "open")
    draw = wait_for_draw(cluster, f"{name}/members")
    assert draw["count"] == 3  # with the place that was offered for the spent code: nobody's
    assert wait_for_draw(cluster, name)["count"] == 3  # who left for the lane is in the list
    keys = draw_of(c, f"{name}/members", "/keys").text.split()
    places = [keys.index(hash_of(draw, ticket).hex()) + 1 for ticket in lane]
    for sluice in cluster.all():
        assert [one.status(sluice)["position"] for one in people[:2]] == places
    wait_for(lambda: [one.status()["state"] for one in people[:2]] == ["admitted"] * 2, 15, 0.3,
             otherwise=cluster.describe)  # and not called in its place


def test_an_appliance_falls_while_people_gather(cluster):
    """kill -9, and back: its file is told on from where it was."""
    name = "killed"
    people = gather(cluster, name, 9)
    tickets = [one.ticket for one in people]
    gone = cluster.at.pop("a2")
    gone.kill()
    more = gather(cluster, name, 4)
    gone.start()
    cluster.at["a2"] = gone
    cluster.wait_whole()
    assert all(one.status(gone)["state"] == "prequeue" for one in people)
    more += gather(cluster, name, 3)
    time.sleep(0.5)
    cluster.all()[0].cli("room", name, "open")
    draw = wait_for_draw(cluster, name)
    assert draw["count"] == 16
    check_places(cluster, name, people + more, tickets + [one.ticket for one in more], draw)


def program(cluster, name, ticket):
    """The manual's own lines, run on each appliance."""
    code = re.search(r"```python\n(.*?)```", MANUAL.read_text(), re.S).group(1)
    for sluice in cluster.all():
        run = subprocess.run([sys.executable, "-c", code, sluice.url(f"/.sluice/{name}"), ticket],
                             capture_output=True, text=True, timeout=20)
        assert run.returncode == 0, run.stderr
        yield run.stdout


def test_the_conductor_falls_at_the_opening(cluster):
    """kill -9 of the one who draws, when the doors open: another draws, from all who gathered,
    those at the dead one included."""
    name = "fallen"
    people = gather(cluster, name, 12)
    tickets = [one.ticket for one in people]
    before = draws(cluster, name)
    time.sleep(0.5)  # a sync and more
    conductor = cluster.all()[0].show("cluster")["conductor"]
    cluster.all()[0].cli("room", name, "open")
    gone = cluster.at.pop(conductor)
    gone.kill()
    draw = wait_for_draw(cluster, name, 15)
    assert draw["commitment"].encode() in before.pop()
    assert draw["count"] == 12
    check_places(cluster, name, people, tickets, draw)
    gone.start()
    cluster.at[conductor] = gone
    cluster.wait_whole()
    wait_for(lambda: len(draws(cluster, name)) == 1, 10, 0.1)
    places = check_places(cluster, name, people, tickets, draw)
    said = set(program(cluster, name, tickets[people.index(places[5])]))
    assert said == {"place 5 of 12\n"}


def test_the_store_has_lost_all_who_gathered(cluster):
    """A Redis that begins empty is told who gathered, by those they gathered at."""
    name = "lost"
    people = gather(cluster, name, 9)
    tickets = [one.ticket for one in people]
    time.sleep(0.5)
    cluster.lose_all()
    assert all(one.status()["state"] == "prequeue" for one in people)
    cluster.all()[0].cli("room", name, "open")
    draw = wait_for_draw(cluster, name, 15)
    assert draw["count"] == 9
    check_places(cluster, name, people, tickets, draw)
