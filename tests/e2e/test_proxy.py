"""Goal: what the admitted send reaches the origin whole, and nothing else does."""
import contextlib
import json
import socket
import threading
import time

import pytest
from network import VISITORS
from sluice import BROWSER, Origin, room, token, wait_for


def echo(visitor_client, path="/derby/echo", **keys):
    answer = visitor_client.get(path, **keys)
    assert answer.status_code == 200
    got = answer.json()
    got["headers"] = [(k.lower(), v) for k, v in got["headers"]]
    return got


def field(got, name):
    return [v for k, v in got["headers"] if k == name]


@pytest.mark.smoke
def test_what_the_origin_sees(make, visitor):
    sluice = make()
    got = echo(visitor(sluice), headers={"X-Mine": "1", "Sluice-Room": "forged",
                                         "Sluice-Session": "forged", "X-Forwarded-For": "1.2.3.4",
                                         "Forwarded": "for=1.2.3.4", "X-Forwarded-Proto": "https"})
    assert field(got, "sluice-room") == ["derby"]
    assert len(field(got, "sluice-session")) == 1 and field(got, "sluice-session") != ["forged"]
    assert field(got, "x-forwarded-for") == [sluice.peer]
    assert field(got, "x-forwarded-proto") == ["http"]
    assert "1.2.3.4" not in field(got, "forwarded")[0]
    assert field(got, "x-mine") == ["1"]
    assert got["target"] == "/derby/echo"


def test_a_trusted_proxy_is_believed(make, visitor):
    sluice = make(top={"trusted_proxies": VISITORS})
    got = echo(visitor(sluice), headers={"X-Forwarded-For": "1.2.3.4"})
    assert field(got, "x-forwarded-for")[0].replace(" ", "") == f"1.2.3.4,{sluice.peer}"


def test_cookies_of_others_stay_byte_for_byte(make, visitor):
    sluice = make()
    one = visitor(sluice)
    one.get("/derby/")
    cookie = f'a="x; y"; sluice-p-derby={one.passed()}; b=2;c = 3; sluice-t-derby=zzz'
    one.client.cookies.clear()
    got = echo(one.client, headers={"Cookie": cookie})
    assert len(field(got, "cookie")) == 1
    text = field(got, "cookie")[0]
    assert "sluice-" not in text
    assert 'a="x; y"' in text and "b=2" in text and "c = 3" in text


@pytest.mark.smoke
def test_bodies_both_ways(make, visitor):
    sluice = make()
    one = visitor(sluice)
    one.get("/derby/")
    for body in (b"", b"x", b"y" * 300_000):
        answer = one.client.post("/derby/echo", content=body)
        assert answer.json()["body"].encode() == body
    chunks = [b"one", b"two" * 1000, b"three"]
    answer = one.client.post("/derby/echo", content=iter(chunks))
    assert answer.json()["body"].encode() == b"".join(chunks)
    assert len(one.get("/derby/big").content) == 8 << 20
    assert one.get("/derby/chunked").text == "one two three"
    assert one.client.head("/derby/").status_code == 200


def test_a_pass_makes_the_answer_private(make, visitor):
    sluice = make()
    one = visitor(sluice)
    answer = one.get("/derby/cookie")
    assert answer.headers["cache-control"] == "private, no-store"
    assert "etag" not in answer.headers
    assert any(c.startswith("basket=1") for c in answer.headers.get_list("set-cookie"))
    assert any(c.startswith("sluice-p-derby=") for c in answer.headers.get_list("set-cookie"))
    again = one.get("/derby/cookie")
    assert again.headers["cache-control"] == "public, max-age=60" and "etag" in again.headers


def test_command_end_frees_the_slot(make, visitor, origin):
    sluice = make(rooms=[room(capacity=1)])
    one, two = visitor(sluice), visitor(sluice)
    one.get("/derby/")
    two.get("/derby/")
    origin.sluice_command = "end"
    answer = one.get("/derby/buy")
    assert "sluice-command" not in answer.headers
    origin.sluice_command = None
    wait_for(lambda: two.status().json()["state"] == "admitted", 10, 0.3)
    assert not one.get("/derby/").text.startswith("shop:")
    assert one.status().status_code in (200, 410)


def test_command_renew_restarts_the_time(make, visitor, origin):
    sluice = make(rooms=[room(capacity=1, session="8s")])
    one = visitor(sluice)
    one.get("/derby/")
    first = one.passed()
    ends = token(first)["expires"]
    threading.Event().wait(5)
    origin.sluice_command = "renew"
    one.get("/derby/more")
    origin.sluice_command = None
    wait_for(lambda: one.get("/derby/") and token(one.passed())["expires"] > ends, 2, 0.05)
    threading.Event().wait(max(0, ends + 0.3 - time.time()))
    assert one.get("/derby/").text.startswith("shop:")
    old = visitor(sluice, headers=dict(BROWSER, **{"Sluice-Pass": first}))
    assert not old.get("/derby/").text.startswith("shop:"), "the first pass has run out"


def test_sliding_sessions_are_renewed_by_use(make, visitor):
    sluice = make(rooms=[room(capacity=1, session="8s", sliding=True)])
    one = visitor(sluice)
    one.get("/derby/")
    first = token(one.passed())
    threading.Event().wait(6)
    one.get("/derby/")
    second = token(one.passed())
    assert second["expires"] > first["expires"] and second["key"] == first["key"]


def test_origin_down_is_502_and_keeps_the_session(make, visitor, origin):
    sluice = make(rooms=[room(capacity=1)])
    origin.stop()
    one = visitor(sluice)
    answer = one.get("/derby/")
    assert answer.status_code == 502
    assert one.passed(), "the pass comes with the 502"
    assert sluice.show("room", "derby")["sessions"] == 1
    json_answer = one.client.get("/derby/", headers={"Accept": "application/json"})
    assert json_answer.status_code == 502 and json_answer.json()


def test_origin_late_is_504(make, visitor, origin):
    site = {"origin": {"servers": [f"127.0.0.1:{origin.port}"], "answer_timeout": "1s"}}
    sluice = make(site=site)
    origin.gate.clear()
    assert visitor(sluice).get("/derby/").status_code == 504
    origin.gate.set()


@contextlib.contextmanager
def scripted_origin(answer):
    """An origin that says exactly `answer` to every request and closes."""
    server = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def serve():
        server.settimeout(0.1)
        while not stop.is_set():
            with contextlib.suppress(OSError):
                peer, _ = server.accept()
                peer.settimeout(2)
                with contextlib.suppress(OSError):
                    peer.recv(65536)
                    peer.sendall(answer)
                peer.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield server.getsockname()[1]
    stop.set()
    thread.join()
    server.close()


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nhi",
    b"nonsense\r\n\r\n",
    b"",
])
def test_an_origin_against_the_grammar_is_502(make, visitor, answer):
    with scripted_origin(answer) as port:
        sluice = make(site={"origin": {"servers": [f"127.0.0.1:{port}"]}})
        assert visitor(sluice).get("/derby/").status_code == 502


def test_a_tunnel_only_after_101(make, visitor):
    answer = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\n"
              b"hello")
    ask = (b"GET /about HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\n"
           b"Upgrade: chat\r\n\r\n")
    with scripted_origin(answer) as port:
        sluice = make(site={"origin": {"servers": [f"127.0.0.1:{port}"]}})
        got = sluice.raw(ask, 3)
        assert got.startswith(b"HTTP/1.1 101 ") and got.endswith(b"hello")
    refused = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"
    with scripted_origin(refused) as port:
        sluice = make(site={"origin": {"servers": [f"127.0.0.1:{port}"]}})
        got = sluice.raw(ask + b"GET /.sluice/derby/status HTTP/1.1\r\nHost: localhost\r\n"
                  b"Connection: close\r\n\r\n", 3)
        assert got.startswith(b"HTTP/1.1 200 ") and b"HTTP/1.1 401 " in got


def test_a_failing_server_is_set_aside(make, visitor, origin):
    second = Origin()
    try:
        servers = [f"127.0.0.1:{origin.port}", f"127.0.0.1:{second.port}"]
        sluice = make(site={"origin": {"servers": servers}}, rooms=[room(capacity=50)])
        for _ in range(10):
            assert visitor(sluice).get("/derby/").status_code == 200
        assert origin.seen and second.seen
        second.stop()
        answers = [visitor(sluice).get("/derby/").status_code for _ in range(20)]
        assert answers.count(200) >= 19
    finally:
        second.stop()


def test_a_session_stays_with_its_server(make, visitor, origin):
    second = Origin()
    try:
        servers = [f"127.0.0.1:{origin.port}", f"127.0.0.1:{second.port}"]
        sluice = make(site={"origin": {"servers": servers, "balance": "session"}},
                      rooms=[room(capacity=50)])
        for _ in range(6):
            one = visitor(sluice)
            before = len(origin.seen), len(second.seen)
            for _ in range(4):
                one.get("/derby/")
            after = len(origin.seen), len(second.seen)
            assert {after[0] - before[0], after[1] - before[1]} == {0, 4}
    finally:
        second.stop()


def test_preflights_pass_within_their_rate(make, visitor, origin):
    sluice = make(site={"preflight_rate": "5/s"}, rooms=[room(capacity=1)])
    visitor(sluice).get("/derby/")
    one = visitor(sluice, headers={"Origin": "https://a.example",
                                   "Access-Control-Request-Method": "POST"})
    answers = [one.client.options("/derby/").status_code for _ in range(30)]
    assert answers[0] == 200 and 503 in answers
    assert sluice.show("room", "derby")["sessions"] == 1


def test_proxy_protocol(make):
    sluice = make(start=False)
    sluice.config["listen"][0]["proxy_protocol"] = True
    sluice.start()
    ask = b"GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    got = sluice.raw(b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 80\r\n" + ask, 3)
    headers = dict((k.lower(), v) for k, v in json.loads(got.split(b"\r\n\r\n", 1)[1])["headers"])
    assert headers["x-forwarded-for"] == "192.0.2.7"
    with sluice.connect() as sock:
        sock.settimeout(5)
        for piece in (b"PROXY TCP4 192.0.2.8 192.0.2.1 40", b"00 80\r\n", ask):
            sock.sendall(piece)
            time.sleep(0.1)
        assert b"192.0.2.8" in sock.recv(65536)
    assert sluice.raw(ask, 3) == b""
    assert {"proxy_bad": 1, "proxy_late": 0}.items() <= {
        line["counter"]: line["value"] for line in sluice.show("counters")}.items()
    assert sluice.process.poll() is None


def test_a_preflight_opens_no_tunnel(make, visitor):
    answer = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\n"
              b"hello")
    with scripted_origin(answer) as port:
        sluice = make(site={"origin": {"servers": [f"127.0.0.1:{port}"]}})
        got = sluice.raw(b"OPTIONS /derby/x HTTP/1.1\r\nHost: localhost\r\n"
                  b"Origin: https://a.example\r\nAccess-Control-Request-Method: GET\r\n"
                  b"Connection: upgrade\r\nUpgrade: chat\r\n\r\n", 2)
        assert got.startswith(b"HTTP/1.1 503 ") and b"hello" not in got


def test_leaving_by_ticket_gives_the_session_back(make, visitor):
    sluice = make(rooms=[room(capacity=1, mode="always")])
    one, two = visitor(sluice), visitor(sluice)
    one.get("/derby/")
    ticket = one.ticket()
    wait_for(lambda: one.status().json()["state"] == "admitted", 10, 0.3)
    two.get("/derby/")
    left = visitor(sluice, headers={"Sluice-Ticket": ticket})
    assert left.client.post("/.sluice/derby/leave").status_code == 204
    wait_for(lambda: two.status().json()["state"] == "admitted", 10, 0.3)
    assert not one.get("/derby/").text.startswith("shop:")


def test_a_renewal_by_command_reaches_the_visitor_with_the_next_answer(make, visitor, origin):
    sluice = make(top={"workers": [0, 1]}, rooms=[room(capacity=1, session="60s")])
    one = visitor(sluice)
    one.get("/derby/")
    ends = token(one.passed())["expires"]
    threading.Event().wait(2)
    origin.sluice_command = "renew"
    one.get("/derby/more")
    origin.sluice_command = None

    def renewed():
        one.get("/derby/")
        return token(one.passed())["expires"] > ends

    wait_for(renewed, 2, 0.05)


@contextlib.contextmanager
def tunnel_origin():
    """An origin that takes every upgrade and then says a word every 50 ms."""
    server = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()
    threads = []

    def talk(peer):
        with contextlib.suppress(OSError), peer:
            head = peer.recv(65536)
            if b"upgrade" not in head.lower():
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nshop:x")
                return
            peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                         b"Upgrade: chat\r\n\r\n")
            while not stop.wait(0.05):
                peer.sendall(b"word ")

    def serve():
        server.settimeout(0.1)
        while not stop.is_set():
            with contextlib.suppress(OSError):
                peer, _ = server.accept()
                threads.append(threading.Thread(target=talk, args=(peer,)))
                threads[-1].start()

    thread = threading.Thread(target=serve)
    thread.start()
    yield server.getsockname()[1]
    stop.set()
    thread.join()
    for one in threads:
        one.join()
    server.close()


@pytest.mark.parametrize("way", ["leave", "revoke"])
def test_a_tunnel_ends_with_its_session(make, visitor, way):
    with tunnel_origin() as port, contextlib.ExitStack() as stack:
        sluice = make(site={"origin": {"servers": [f"127.0.0.1:{port}"]}},
                      rooms=[room(capacity=1)])
        one = visitor(sluice)
        one.get("/derby/")
        sock = stack.enter_context(sluice.connect())
        sock.sendall(b"GET /derby/chat HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\n"
                     b"Upgrade: chat\r\nSluice-Pass: %s\r\n\r\n" % one.passed().encode())
        sock.settimeout(5)
        assert sock.recv(4096).startswith(b"HTTP/1.1 101 ")
        if way == "leave":
            assert one.client.post("/.sluice/derby/leave").status_code == 204
        else:
            sluice.cli("secrets", "revoke", str(token(one.passed())["secret"]))
        began = time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            while sock.recv(4096):
                assert time.monotonic() - began < 3, "the tunnel goes on"


def test_a_burst_of_newcomers_fills_the_free_slots(make, visitor):
    """Tickets drawn a moment later do not stand before those who saw nobody wait."""
    sluice = make(rooms=[room(capacity=3)])
    ask = (b"GET /derby/ HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n"
           b"Connection: close\r\n\r\n")
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(sluice.connect())
                 for _ in range(12)]
        for sock in socks:
            sock.sendall(ask)
        inside = 0
        for sock in socks:
            sock.settimeout(5)
            got = b""
            while piece := sock.recv(65536):
                got += piece
            inside += b"shop:" in got
    assert inside == 3
