"""Goal: what those who gather were told stands, who leaves them is not called, and the draw of a
lane can be checked as its room's can."""
import hashlib

import pytest
from network import VISITORS
from sluice import JSON, room, token, wait_for
from test_draw import (doors, draw_of, gather, hash_of, moment, open_soon, states, wait_for_draw)

pytestmark = pytest.mark.above
STAFF = {"name": "staff", "header": "X-Staff"}


def leave(one):
    answer = one.client.post("/.sluice/derby/leave")
    assert answer.status_code == 204 and one.ticket() is None


def presents(one, ticket):
    return one.client.get("/.sluice/derby/status", headers={"Sluice-Ticket": ticket, **JSON})


@pytest.mark.parametrize("is_killed", [False, True], ids=["runs on", "killed after the 204"])
def test_who_leaves_a_gathering_is_not_called(make, visitor, is_killed):
    """Their numbers stay in the list, which is public; no turn and no slot is spent on them."""
    sluice = make(rooms=[doors(capacity=3, claim="1h")])
    people = gather(visitor, sluice, 12)
    tickets = [one.ticket() for one in people]
    gone, rest = people[:8], people[8:]
    for one in gone:
        leave(one)
    if is_killed:
        sluice.kill()
        sluice.start()
    assert presents(visitor(sluice), tickets[0]).status_code == 410
    open_soon(sluice)
    draw = wait_for_draw(rest[0])
    assert draw["count"] == 12
    keys = rest[0].client.get("/.sluice/derby/draw/keys").text.split()
    order = sorted(rest, key=lambda one: keys.index(
        hash_of(draw, tickets[people.index(one)]).hex()))
    wait_for(lambda: sum(one["state"] == "admitted" for one in states(rest)) == 3, 10, 0.1)
    assert all(one.passed() for one in order[:3]) and not order[3].passed()
    now = sluice.show("room", "derby")
    assert now["sessions"] == 3 and now["called"] <= 1 and now["waiting"] <= 1
    plain = visitor(sluice, headers=JSON)
    for ticket in tickets[:8]:
        answer = presents(plain, ticket)
        assert answer.status_code == 410 and answer.json()["state"] == "expired"
    assert sluice.show("room", "derby")["sessions"] == 3
    order[0].client.post("/.sluice/derby/leave")
    wait_for(lambda: order[3].status().json()["state"] == "admitted", 10, 0.1)
    wait_for(lambda: visitor(sluice).get("/derby/").headers.get("Sluice-State"), 5)


def test_the_first_to_come_gathers(make, visitor):
    """Also where nothing is known yet, and the first seed is still to be saved."""
    sluice = make(rooms=[doors(), room("other", order="window", window="30s", mode="always")])
    got = sluice.raw(b"GET /derby HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"
                     b"GET /other HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
                     b"Connection: close\r\n\r\n")
    assert got.count(b"Set-Cookie: sluice-t-") == 2 and b'"state":"prequeue"' in got
    assert b"ahead_min" in got  # a window from the first one on


def test_leaving_twice_and_after_the_draw(make, visitor):
    sluice = make(rooms=[doors(capacity=1)])
    people = gather(visitor, sluice, 4)
    ticket = people[0].ticket()
    headers = {"Sluice-Ticket": ticket, **JSON}
    plain = visitor(sluice, headers=JSON)
    for _ in range(2):
        assert plain.client.post("/.sluice/derby/leave", headers=headers).status_code == 204
    open_soon(sluice)
    wait_for_draw(people[1])
    assert plain.client.post("/.sluice/derby/leave", headers=headers).status_code == 204
    assert presents(plain, ticket).status_code == 410
    assert sluice.show("room", "derby")["left"] == 1
    rejoins = people[0]
    assert rejoins.get("/derby/").headers["Sluice-State"] in ("expired", "waiting")
    rejoins.get("/derby/")
    assert rejoins.status().json()["position"] == 5  # at the end, like anybody


def test_a_salt_that_was_named_stands(make, visitor):
    """Whoever knows seed and tickets could choose among salts, so there is one."""
    sluice = make(rooms=[doors(capacity=1, salt="00c0ffee")])
    the_room = sluice.config["sites"][0]["rooms"][0]
    the_room["salt"] = "aa"
    sluice.write()
    sluice.cli("reload")  # nobody has gathered
    people = gather(visitor, sluice, 3)
    wait_for(lambda: sluice.show("room", "derby")["salt"] == "aa", 5)
    for other in ("bb", None):
        the_room.pop("salt", None)
        if other:
            the_room["salt"] = other
        the_room["capacity"] = 7
        sluice.write()
        refused = sluice.cli("reload", check=False)
        said = refused.stdout + refused.stderr
        assert refused.returncode == 1 and "sluice.yaml:" in said
        assert "sites[0].rooms[0].salt: " in said and "stands until they are drawn" in said
        assert draw_of(people[0])["salt"] == "aa"
        assert sluice.show("room", "derby")["capacity"] == 1
        sluice.cli("check")  # which cannot know
    refused = sluice.cli("room", "derby", "salt", "cc", check=False)
    assert refused.returncode == 1 and "aa was named" in refused.stdout + refused.stderr
    sluice.cli("room", "derby", "salt", "AA")
    sluice.kill()
    the_room["salt"] = "dd"
    sluice.start()  # a start asks nobody, and changes nothing
    assert draw_of(people[0])["salt"] == "aa"
    sluice.cli("room", "derby", "open")
    draw = wait_for_draw(people[0])
    assert draw["salt"] == "aa" and draw["count"] == 3


def test_a_salt_may_be_named_while_people_gather_but_once(make, visitor):
    """Tonight's lottery numbers are known to nobody before."""
    sluice = make(rooms=[doors(capacity=1)])
    people = gather(visitor, sluice, 2)
    assert "no public" in people[0].get("/derby/").text
    sluice.cli("room", "derby", "salt", "01")
    assert draw_of(people[0])["salt"] == "01"
    assert sluice.cli("room", "derby", "salt", "02", check=False).returncode == 1
    open_soon(sluice)
    assert wait_for_draw(people[0])["salt"] == "01"


def test_a_window_keeps_its_salt_and_the_next_has_another(make, visitor):
    sluice = make(rooms=[room(capacity=1, order="window", window="3s", mode="always", salt="aa")])
    wait_for(lambda: sluice.show("room", "derby")["gathering"], 10, 0.1)
    first = visitor(sluice)
    first.get("/derby/")
    sluice.config["sites"][0]["rooms"][0]["salt"] = "bb"
    sluice.write()
    sluice.cli("reload")
    wait_for(lambda: first.status().json()["position"], 10, 0.1)
    assert draw_of(first)["salt"] == "aa"
    second = visitor(sluice)
    second.get("/derby/")
    wait_for(lambda: draw_of(second)["salt"] == "bb", 15, 0.2)


def test_a_lanes_draw_can_be_checked(make, visitor):
    sluice = make(rooms=[doors(capacity=1, salt="0a", lanes=[STAFF])],
                  top={"trusted_proxies": VISITORS})
    people = gather(visitor, sluice, 3)
    staff = [visitor(sluice) for _ in range(4)]
    for one in staff:
        one.get("/derby/", headers={"X-Staff": "1"})
    early = [one.ticket() for one in staff]
    assert len({token(ticket)["line"] for ticket in early}) == 1
    assert token(early[0])["line"] != token(people[0].ticket())["line"]
    plain = visitor(sluice, headers=JSON)
    before = plain.client.get("/.sluice/derby/staff/draw").json()
    assert before["seed"] is None and before["commitment"] != draw_of(plain)["commitment"]
    # Whose ticket is shown makes no difference: a draw is public.
    assert staff[0].client.get("/.sluice/derby/draw").json() == draw_of(plain)
    assert plain.client.get("/.sluice/derby/staff/draw/keys").status_code == 404
    for other in ("staff", "staff/status", "nobody/draw", "staff/draw/", "staff/draw/keys/x",
                  "draw/draw", "staff/staff/draw"):
        assert plain.client.get(f"/.sluice/derby/{other}").status_code == 404, other
    assert plain.client.post("/.sluice/derby/staff/draw").status_code == 405
    open_soon(sluice)
    draw = wait_for(lambda: (lambda d: d["seed"] and d)(
        plain.client.get("/.sluice/derby/staff/draw").json()), 10, 0.1)
    keys = plain.client.get("/.sluice/derby/staff/draw/keys").text
    assert draw["count"] == 4 and draw["salt"] == "0a"
    assert hashlib.sha256(keys.encode()).hexdigest() == draw["list_sha256"]
    assert hashlib.sha256(bytes.fromhex(draw["seed"])).hexdigest() == before["commitment"]
    lines = keys.split()
    for one, ticket in zip(staff, early):
        assert one.status().json()["position"] == lines.index(hash_of(draw, ticket).hex()) + 1
    assert wait_for_draw(plain)["count"] == 3
    said = sluice.cli("draw", "verify", *early).stdout
    assert said.count(" of 4") == 4 and said.count("derby/staff") == 4
