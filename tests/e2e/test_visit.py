"""Goal: a visitor arrives, waits, is called, and shops; contract sections 2 and 3."""
import time

import pytest
from sluice import BROWSER, JSON, room, token, wait_for


@pytest.mark.smoke
def test_direct_while_nobody_waits(make, visitor, origin):
    sluice = make()
    alice = visitor(sluice)
    answer = alice.get("/derby/")
    assert answer.status_code == 200
    assert answer.text.startswith("shop:")
    assert answer.headers["cache-control"] == "private, no-store"
    assert alice.passed() and not alice.ticket()
    one = token(alice.passed())
    assert one["kind"] == 2 and one["expires"] - one["issued"] in (600, 601)
    assert origin.header("Sluice-Room") == ["derby"]
    assert origin.header("Sluice-Session") == [f"{one['key']:016x}"]
    # The pass is used again, and nothing new is issued.
    again = alice.get("/derby/more")
    assert again.text == answer.text
    assert "set-cookie" not in again.headers


def test_full_room_queues_in_order(make, visitor, origin):
    sluice = make()
    inside = [visitor(sluice) for _ in range(2)]
    for one in inside:
        assert one.get("/derby/").text.startswith("shop:")
    waiting = [visitor(sluice) for _ in range(3)]
    for number, one in enumerate(waiting, 1):
        page = one.get("/derby/")
        assert page.status_code == 200
        assert page.headers["sluice-state"] in ("waiting", "next")
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["x-robots-tag"] == "noindex"
        assert int(page.headers["retry-after"]) >= 1
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert token(one.ticket())["kind"] == 1
        status = one.status()
        assert status.status_code == 200
        assert status.json()["position"] == number
        assert status.json()["exact"] is True
    assert len(origin.seen) == 2


@pytest.mark.smoke
def test_leave_gives_the_slot_to_the_first(make, visitor):
    sluice = make()
    inside = [visitor(sluice) for _ in range(2)]
    for one in inside:
        one.get("/derby/")
    waiting = [visitor(sluice) for _ in range(3)]
    for one in waiting:
        one.get("/derby/")
    gone = inside[0].client.post("/.sluice/derby/leave", headers={"Sec-Fetch-Site": "same-origin"})
    assert gone.status_code == 204
    assert wait_for(lambda: waiting[0].status().json()["state"] == "admitted", 10, 0.3)
    assert waiting[0].passed()
    assert waiting[0].get("/derby/").text.startswith("shop:")
    assert waiting[1].status().json()["state"] in ("waiting", "next")
    # The one who left is outside now.
    assert not inside[0].get("/derby/").text.startswith("shop:")


def test_a_ticket_given_back_has_expired(make, visitor):
    """Whoever kept a copy is told at once, not when its turn would have come."""
    sluice = make(rooms=[room(capacity=1)])
    visitor(sluice).get("/derby/")
    alice, bob = visitor(sluice), visitor(sluice)
    for one in (alice, bob):
        one.get("/derby/")
    ticket = alice.ticket()
    assert bob.status().json()["state"] == "waiting"
    assert alice.client.post("/.sluice/derby/leave").status_code == 204
    assert not alice.ticket()
    copy = {"Sluice-Ticket": ticket}
    answer = alice.client.get("/.sluice/derby/status", headers=dict(JSON, **copy))
    assert answer.status_code == 410 and answer.json()["state"] == "expired"
    assert alice.client.post("/.sluice/derby/leave", headers=copy).status_code == 204  # again
    assert bob.status().json()["state"] == "waiting"
    # Loading the page joins again, behind whoever came meanwhile.
    page = alice.get("/derby/", headers=dict(JSON, **copy))
    assert page.json()["state"] == "waiting" and page.json()["position"] == 3


def test_called_visitor_is_forwarded_in_the_same_request(make, visitor):
    sluice = make(rooms=[room(capacity=1, session="3s")])
    visitor(sluice).get("/derby/")
    bob = visitor(sluice)
    bob.get("/derby/")
    answer = wait_for(lambda: (lambda a: a if a.text.startswith("shop:") else None)(
        bob.get("/derby/x?y=1")), 10, 0.3)
    assert answer.status_code == 200
    assert bob.passed()


def test_session_ends_at_its_second(make, visitor):
    sluice = make(rooms=[room(capacity=1, session="2s")])
    alice = visitor(sluice)
    alice.get("/derby/")
    expires = token(alice.passed())["expires"]
    held = alice.passed()
    while time.time() < expires - 0.2:
        assert alice.get("/derby/", headers={"Sluice-Pass": held}).text.startswith("shop:")
        time.sleep(0.1)
    time.sleep(max(0, expires + 0.3 - time.time()))
    bob = visitor(sluice)
    assert bob.get("/derby/").text.startswith("shop:")
    late = alice.get("/derby/", headers={"Sluice-Pass": held})
    assert not late.text.startswith("shop:")


def test_json_for_those_who_ask(make, visitor):
    sluice = make(rooms=[room(capacity=1)])
    visitor(sluice).get("/derby/")
    app = visitor(sluice, headers=JSON)
    answer = app.get("/derby/")
    assert answer.headers["content-type"].startswith("application/json")
    body = answer.json()
    assert body["room"] == "derby" and body["state"] in ("waiting", "next")
    assert set(body) >= {"room", "state", "position", "ahead", "exact", "eta", "poll_after",
                         "opens", "expires", "now", "message"}


@pytest.mark.parametrize("method,headers", [
    ("HEAD", BROWSER),
    ("POST", BROWSER),
    ("GET", dict(BROWSER, **{"Sec-Fetch-Mode": "no-cors"})),
    ("GET", dict(BROWSER, **{"Sec-Purpose": "prefetch"})),
    ("GET", {"Accept": "image/png", "User-Agent": "x"}),
    ("OPTIONS", BROWSER),
])
def test_who_draws_no_ticket(make, visitor, method, headers):
    sluice = make()
    one = visitor(sluice, headers=headers)
    answer = one.client.request(method, "/derby/")
    assert answer.status_code == 503
    assert "retry-after" in answer.headers and answer.headers["cache-control"] == "no-store"
    assert not one.ticket() and not one.passed()


def test_status_without_a_token(make, visitor):
    sluice = make()
    answer = visitor(sluice).status()
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Sluice"
    assert answer.json() == {"state": "unknown"}


def test_endpoints_that_are_not(make, visitor):
    sluice = make()
    one = visitor(sluice)
    assert one.status("nobody").status_code == 404
    assert one.get("/.sluice/what").status_code == 404
    wrong = one.client.post("/.sluice/derby/status")
    assert wrong.status_code == 405 and "GET" in wrong.headers["allow"]
    assert one.get("/.sluice/health").status_code == 200


def test_unguarded_paths_go_straight_through(make, visitor, origin):
    sluice = make()
    one = visitor(sluice)
    assert one.get("/about").text == "shop:none\n"
    assert origin.header("Sluice-Room") == []
    assert not one.passed()


def test_unknown_host(make, visitor):
    sluice = make()
    assert visitor(sluice).get("/derby/", headers={"Host": "other.example"}).status_code == 421


@pytest.mark.parametrize("spelling", [
    "/DERBY/", "/%64erby/", "//derby/", "/x/../derby/", "/./derby", "/derby;x", "/derby.json",
    "/%2564erby/", "/x/%2e%2e/derby", "/derbyshire",
])
def test_the_gate_is_not_passed_by_spelling(make, visitor, origin, spelling):
    sluice = make(rooms=[room(capacity=1)])
    visitor(sluice).get("/derby/")
    seen = len(origin.seen)
    got = sluice.raw(b"GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n"
                      b"Connection: close\r\n\r\n" % spelling.encode())
    assert b"shop:" not in got
    assert len(origin.seen) == seen
