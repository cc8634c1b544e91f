"""Goal: whatever sluice refuses or drops is counted by name, and by that name alone.

One appliance for all: each row provokes one drop, and says what the client saw. Drops for which a
worker must be cornered are in tests/unit/worker/test_drops.c.
"""
import contextlib
import os
import re
import socket
import struct
import time

import pytest
from sluice import ROOT, Origin, Sluice, free_port, room, wait_for

HEAD_TIMEOUT_S = 3
CONNECTIONS = 64
PER_SOURCE = 40
EXCHANGES = 2
FIELDS = 20
TURNS = ("turns", "busy_turns", "busy_cycles")
CHUNKED = "Transfer-Encoding: chunked\r\n"
HEALTH = b"GET /.sluice/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
LIST = (ROOT / "dataplane/counters.h").read_text()
DROPS = set(re.findall(r"X\((\w+), ", LIST.split("#define COUNTERS_DROPS")[1]))


@pytest.fixture(scope="module")
def sluice():
    """Sites: the shop; others whose origin is down, never answers, or never lets one in."""
    origin, silent, full = Origin(), listener(16), listener(0)
    waiting = socket.create_connection(full.getsockname())
    one = Sluice(origin.port, rooms=[room(capacity=1)], site={"preflight_rate": "1/s"}, top={
        "workers": [min(os.sched_getaffinity(0))], "connections": CONNECTIONS,
        "connections_per_source": PER_SOURCE, "origin_connections": EXCHANGES,
        "http": {"head_timeout": f"{HEAD_TIMEOUT_S}s", "idle_timeout": "5s",
                 "fields_max": FIELDS, "rate_min": "1k", "send_timeout": "1s",
                 "body_timeout": "2s"}})
    one.config["sites"] += [
        site("down", free_port()),
        site("silent", silent.getsockname()[1], answer_timeout="1s"),
        site("full", full.getsockname()[1], connect_timeout="300ms")]
    try:
        yield one.start()
    finally:
        one.destroy()
        origin.stop()
        for sock in (silent, full, waiting):
            sock.close()


def listener(backlog):
    return socket.create_server(("127.0.0.1", 0), backlog=backlog)


def site(name, port, **origin):
    return {"name": name, "hosts": [f"{name}.example"],
            "origin": {"servers": [f"127.0.0.1:{port}"], **origin}}


def counters(sluice):
    return {c["counter"]: c["value"] for c in sluice.show("counters") if c["part"] == "worker"}


class Counted:
    """What the worker has counted since this was made, turns apart."""

    def __init__(self, sluice):
        self.sluice = sluice
        wait_for(lambda: sluice.show("workers")[0]["connections"] == 0, 5)
        self.before = counters(sluice)

    def moved(self):
        now = counters(self.sluice)
        return {name: now[name] - self.before[name] for name in now
                if name not in TURNS and now[name] != self.before[name]}

    def drops(self):
        return {name: by for name, by in self.moved().items() if name in DROPS}

    def expect(self, **drops):
        """These drops, and no others."""
        until = time.monotonic() + 5
        while (found := self.drops()) != drops and time.monotonic() < until:
            time.sleep(0.05)
        assert found == drops


@pytest.fixture
def counted(sluice):
    return Counted(sluice)


@contextlib.contextmanager
def connection(sluice, source=1):
    with contextlib.closing(sluice.connect(sluice.link.source(source))) as sock:
        sock.settimeout(10)
        yield sock


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def request(line, fields="", host="localhost", body=""):
    return f"{line} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n{body}".encode()


def answer(sock):
    """The status of the next answer; its body is read. None if the peer has ended."""
    got = b""
    while b"\r\n\r\n" not in got:
        piece = sock.recv(65536)
        if not piece:
            assert not got
            return None
        got += piece
    head, _, body = got.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head.lower())
    left = int(length.group(1)) - len(body) if length else 0
    while left > 0:
        piece = sock.recv(left)
        assert piece
        left -= len(piece)
    return int(head.split(b" ")[1])


def is_kept(sock):
    try:
        sock.sendall(HEALTH)
        return answer(sock) == 200
    except ConnectionError:
        return False


def has_ended(sock):
    try:
        return sock.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("drop,sent,status,kept", [
    ("bad_head", b"GET / HTTP/1.1\nHost: localhost\n\n", 400, False),
    ("bad_body", request("POST /about", CHUNKED, body="zz\r\n"), 400, False),
    ("bad_target", request("GET /../x"), 400, True),
    ("bad_target", request("GET http://other.example/"), 400, True),
    ("head_too_large", request("GET /" + "a" * 9000), 414, False),
    ("head_too_large", request("GET /", f"A: {'a' * 8000}\r\n" * 3), 431, False),
    ("head_too_large", request("GET /about", "A: b\r\n" * FIELDS), 431, False),
    ("bad_version", b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505, False),
    ("misdirected", request("GET /", host="nobody.example"), 421, True),
    ("bad_method", request("TRACE /"), 501, False),
    ("bad_method", request("DELETE /.sluice/derby/status"), 405, True),
    ("not_found", request("GET /.sluice/cup/status"), 404, True),
    ("not_found", request("GET /.sluice/derby/draw"), 404, True),
    ("cross_site", request("POST /.sluice/derby/leave", "Sec-Fetch-Site: cross-site\r\n"), 403,
     True),
    ("bad_token", request("POST /.sluice/derby/leave", f"Sluice-Pass: {'A' * 64}\r\n"), 204, True),
    ("unknown", request("GET /.sluice/derby/status"), 401, True),
    ("unguarded_method", request("POST /derby/"), 503, True),
    ("unguarded_method", request("GET /derby/", "Sec-Fetch-Mode: no-cors\r\n"), 503, True),
    ("slow_body", request("POST /about", "Content-Length: 9000\r\n"), 408, False),
    ("slow_body", request("POST /about", "Content-Length: 9000\r\n", body="x" * 4096), 408,
     False),
    ("head_timeout", b"GET / HTTP/1.1\r\nHost: local", 408, False),
    ("origin_failed", request("GET /", host="down.example"), 502, True),
    ("origin_late", request("GET /", host="silent.example"), 504, True),
    ("origin_late", request("GET /", host="full.example"), 504, True),
], ids=lambda value: str(value)[:24])
def test_refused(sluice, counted, drop, sent, status, kept):
    with connection(sluice) as sock:
        sock.sendall(sent)
        assert answer(sock) == status
        assert is_kept(sock) == kept
    counted.expect(**{drop: 1})


def test_as_many_fields_as_may_be(sluice, counted):
    with connection(sluice) as sock:
        sock.sendall(request("GET /about", "A: b\r\n" * (FIELDS - 1)))  # and Host
        assert answer(sock) == 200
    counted.expect()


def test_idle_timeout(sluice, counted):
    with connection(sluice) as silent, connection(sluice) as polite:
        assert is_kept(polite)
        assert has_ended(silent) and has_ended(polite)
    counted.expect(idle_timeout=2)


def test_drain_timeout(sluice, counted):
    with connection(sluice) as sock:
        sock.sendall(request("POST /derby/", "Content-Length: 9\r\n"))
        assert answer(sock) == 503 and answer(sock) is None
        counted.expect(unguarded_method=1, drain_timeout=1)
        with pytest.raises(ConnectionError):
            sock.sendall(b"x")
            time.sleep(0.1)
            sock.sendall(b"x")


def test_too_much_to_drain(sluice, counted):
    with connection(sluice) as sock:
        sock.sendall(request("POST /derby/", "Content-Length: 99999999\r\n"))
        with pytest.raises(ConnectionError):
            for _ in range(1000):
                sock.sendall(b"x" * 65536)
    counted.expect(unguarded_method=1, drain_timeout=1)


def busy(stack, sluice, source):
    """A connection in the middle of a head, so that it is not idle."""
    sock = stack.enter_context(connection(sluice, source))
    sock.sendall(HEALTH + b"GET /derby")
    assert answer(sock) == 200
    return sock


def test_source_full(sluice, counted):
    with contextlib.ExitStack() as stack:
        for _ in range(PER_SOURCE):
            busy(stack, sluice, 2)
        with connection(sluice, 2) as sock:
            assert answer(sock) == 503 and has_ended(sock)
        assert is_kept(stack.enter_context(connection(sluice, 3)))
        counted.expect(source_full=1)


def test_table_full(sluice, counted):
    with contextlib.ExitStack() as stack:
        for i in range(CONNECTIONS):
            busy(stack, sluice, 2 + i % 2)
        with connection(sluice, 4) as sock:
            assert answer(sock) == 503 and has_ended(sock)
        counted.expect(table_full=1)


def test_evicted(sluice, counted):
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connection(sluice, 2 + i % 2))
                for i in range(CONNECTIONS - CONNECTIONS // 10 + 1)]
        assert has_ended(idle[0])
        assert is_kept(idle[1]) and is_kept(idle[-1])
        counted.expect(evicted=1)


def test_exchanges_full(sluice, counted):
    asks = request("GET /", host="silent.example")
    with contextlib.ExitStack() as stack:
        before = [stack.enter_context(connection(sluice)) for _ in range(EXCHANGES)]
        for sock in before:
            sock.sendall(asks)
        wait_for(lambda: counted.moved().get("forwarded") == EXCHANGES, 5)
        sock = stack.enter_context(connection(sluice))
        sock.sendall(asks)
        assert answer(sock) == 503 and is_kept(sock)
        for waits in before:
            assert answer(waits) == 504
    counted.expect(exchanges_full=1, origin_late=EXCHANGES)


def test_peer_gone(sluice, counted):
    with connection(sluice) as sock:
        sock.sendall(request("GET /", host="silent.example"))
        wait_for(lambda: counted.moved().get("forwarded") == 1, 5, 0.01)
        reset(sock)
    counted.expect(peer_gone=1)


def test_preflights(sluice, counted):
    asks = request("OPTIONS /derby/", "Origin: http://a.example\r\n"
                   "Access-Control-Request-Method: PUT\r\n")
    with connection(sluice) as sock:
        statuses = []
        for _ in range(3):  # of which at most two are in different seconds
            sock.sendall(asks)
            statuses.append(answer(sock))
        assert is_kept(sock)
    limited = statuses.count(503)
    assert statuses[0] == 200 and 1 <= limited <= 2
    counted.expect(preflight_limited=limited)
    moved = counted.moved()
    assert moved["preflights"] == moved["forwarded"] == 3 - limited


def test_a_visit(sluice, counted, visitor):
    """What is done rather than refused."""
    inside, waiting = visitor(sluice), visitor(sluice)

    def step(what, **moved):
        before = counted.moved()
        what()
        now = counted.moved()
        assert {name: by - before.get(name, 0) for name, by in now.items()
                if by != before.get(name, 0)} == moved

    step(lambda: inside.get("/derby/"), connections=1, requests=1, claims=1, granted=1,
         forwarded=1)
    step(lambda: inside.get("/derby/"), requests=1, tokens=1, forwarded=1)
    step(lambda: inside.get("/derby/"), requests=1, tokens_remembered=1, forwarded=1)
    step(lambda: waiting.get("/derby/"), connections=1, requests=1, tickets=1, pages=1)
    polled = counted.moved()
    waiting.status()  # the first in line may be called already, and claims then
    assert counted.moved()["polls"] == polled.get("polls", 0) + 1
    for one in (waiting, inside):
        one.client.post("/.sluice/derby/leave")
    assert counted.moved()["left"] == 2 and counted.drops() == {}
