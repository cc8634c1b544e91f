"""Goal: origins are spoken to over TLS, and only if they are who they must be."""
import contextlib
import hashlib
import json
import re
import socket
import ssl
import threading
import time

import httpx
import pytest
from authority import Authority
from sluice import Origin, wait_for

GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.fixture
def secure():
    """secure(context) is an origin behind TLS."""
    made = []

    def start(context):
        origin = Origin()
        origin.server.socket = context.wrap_socket(origin.server.socket, server_side=True)
        made.append(origin)
        return origin

    yield start
    for origin in made:
        origin.stop()


class Script:
    """An origin that does with each connection what `play(connection)` says."""

    def __init__(self, play):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.play = play
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with contextlib.closing(connection), contextlib.suppress(OSError):
                self.play(connection)

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)


@pytest.fixture
def script():
    made = []

    def start(play):
        made.append(Script(play))
        return made[-1]

    yield start
    for one in made:
        one.stop()


def site(port, host="127.0.0.1", tls=None, **keys):
    origin = {"servers": [f"{host}:{port}"], "tls": tls or {}, "retry": "1s"}
    return {"origin": dict(origin, **keys)}


def counters(sluice, part="tls"):
    return {line["counter"]: line["value"] for line in sluice.show("counters")
            if line["part"] == part}


def status(sluice, path=b"/about", seconds=10):
    answer = sluice.raw(GET % path, seconds)
    return int(answer.split(b" ")[1]) if answer else None


@pytest.mark.parametrize("host,names,name", [
    ("127.0.0.1", "IP:127.0.0.1", None),
    ("localhost", "DNS:localhost", None),
    ("127.0.0.1", "DNS:shop.internal", "shop.internal"),
    ("127.0.0.1", "DNS:*.internal.example", "shop.internal.example"),
])
def test_an_origin_that_is_who_it_must_be(make, authority, secure, host, names, name):
    told = []
    context = authority.server(names)
    context.sni_callback = lambda connection, server_name, _: told.append(server_name)
    origin = secure(context)
    tls = dict({"ca": str(authority.ca)}, **({"name": name} if name else {}))
    sluice = make(site=site(origin.port, host, tls))
    wait_for(lambda: status(sluice) == 200, 5)  # a name takes a moment to resolve
    assert told[-1] == (name or (None if host == "127.0.0.1" else host))
    assert origin.header("Host") == ["localhost"]
    assert counters(sluice)["handshakes"] >= 1
    assert {line["tls"] for line in sluice.show("origin")} == {"yes"}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_and_sessions_resumed(make, authority, secure, version):
    context = authority.server("IP:127.0.0.1")
    context.minimum_version = context.maximum_version = version
    origin = secure(context)
    sluice = make(site=site(origin.port, tls={"ca": str(authority.ca)}, idle_timeout="0s"))
    for _ in range(4):  # nothing is kept: each is a connection of its own
        assert status(sluice) == 200
    after = counters(sluice)
    assert after["handshakes"] == 4
    assert after["resumed"] == 3


def test_connections_are_kept(make, authority, secure):
    origin = secure(authority.server("IP:127.0.0.1"))
    sluice = make(site=site(origin.port, tls={"ca": str(authority.ca)}), top={"workers": [0]})
    with httpx.Client(base_url=sluice.url("")) as client:
        for _ in range(30):
            assert client.get("/about").status_code == 200
    assert counters(sluice)["handshakes"] == 1
    assert counters(sluice, "origin")["reuses"] == 29
    assert counters(sluice, "origin")["kept_spoke"] == 0


def test_large_bodies_both_ways(make, authority, secure):
    origin = secure(authority.server("IP:127.0.0.1"))
    sluice = make(site=site(origin.port, tls={"ca": str(authority.ca)}))
    body = bytes(range(256)) * (16 << 10)  # 4 MB
    with httpx.Client(base_url=sluice.url(""), timeout=30) as client:
        assert client.get("/big").content == b"x" * (8 << 20)
        assert client.post("/upload", content=body).status_code == 200
        assert hashlib.sha256(origin.seen[-1]["body"]).digest() == hashlib.sha256(body).digest()
        chunks = (body[at:at + 50000] for at in range(0, len(body), 50000))
        assert client.post("/upload", content=chunks).status_code == 200
        assert origin.seen[-1]["body"] == body


def test_a_slow_reader_stops_the_origin(make, authority, secure):
    origin = secure(authority.server("IP:127.0.0.1"))
    sluice = make(site=site(origin.port, tls={"ca": str(authority.ca)}))
    with contextlib.closing(sluice.connect()) as sock:
        sock.sendall(GET % b"/big")
        time.sleep(0.7)
        sock.settimeout(10)
        got = b""
        while piece := sock.recv(1 << 16):
            got += piece
    assert got.endswith(b"x" * (8 << 20))


def refused(sluice, text, counter, seconds=10):
    """Nobody gets through, visitors get 502, and log, counters and `show origin` say why."""
    for _ in range(5):
        assert status(sluice) == 502
    assert counters(sluice)[counter] >= 1
    assert counters(sluice)["handshakes"] == 0
    assert {line["tls"] for line in sluice.show("origin")} == {text}
    line = f"TLS: {text}"
    wait_for(lambda: line in sluice.read_log(), seconds)
    time.sleep(1.2)
    assert status(sluice) == 502
    time.sleep(1.2)
    assert sluice.read_log().count(line) == 1  # once a minute


def test_wrong_name(make, authority, secure):
    origin = secure(authority.server("DNS:shop.internal,IP:127.0.0.2"))
    sluice = make(site=site(origin.port, tls={"ca": str(authority.ca)}))
    refused(sluice, "IP address mismatch", "handshake_certificate")
    assert origin.seen == []


def test_untrusted(make, authority, secure, tmp_path):
    origin = secure(Authority(tmp_path, "other").server("IP:127.0.0.1"))
    sluice = make(site=site(origin.port, tls={"ca": str(authority.ca)}))
    refused(sluice, "unable to get local issuer certificate", "handshake_certificate")
    assert origin.seen == []


def test_not_trusted_by_the_system(make, authority, secure):
    origin = secure(authority.server("IP:127.0.0.1"))
    sluice = make(site=site(origin.port))
    refused(sluice, "unable to get local issuer certificate", "handshake_certificate")


def test_a_server_without_tls(make, origin, authority):
    sluice = make(site=site(origin.port, tls={"ca": str(authority.ca)}))
    refused(sluice, "wrong version number", "handshake_protocol")
    assert origin.seen == []


def test_a_server_that_does_not_go_on(make, authority, script):
    origin = script(lambda connection: time.sleep(0.6))
    sluice = make(site=site(origin.port, tls={"ca": str(authority.ca)}, connect_timeout="200ms"))
    assert status(sluice) == 504
    assert counters(sluice)["handshake_late"] == 1
    assert counters(sluice, "origin")["connects_late"] == 1
    wait_for(lambda: "TLS: the handshake was not done in time" in sluice.read_log(), 5)


def close_delimited(context, is_whole):
    def play(connection):
        with context.wrap_socket(connection, server_side=True) as tls:
            tls.recv(65536)
            tls.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall there is")
            if is_whole:
                tls.unwrap()
            else:
                socket.socket.shutdown(tls, socket.SHUT_WR)
                time.sleep(0.1)
    return play


@pytest.mark.parametrize("is_whole", [True, False])
def test_an_answer_that_just_breaks_off_does_not_look_whole(make, authority, script, is_whole):
    context = authority.server("IP:127.0.0.1")
    origin = script(close_delimited(context, is_whole))
    sluice = make(site=site(origin.port, tls={"ca": str(authority.ca)}))
    answer = sluice.raw(GET % b"/about")
    assert b"all there is" in answer
    assert answer.endswith(b"\r\n0\r\n\r\n") == is_whole
    assert counters(sluice)["cut"] == (0 if is_whole else 1)


def test_a_tunnel(make, authority, script):
    context = authority.server("IP:127.0.0.1")

    def play(connection):
        with context.wrap_socket(connection, server_side=True) as tls:
            tls.recv(65536)
            tls.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                        b"Upgrade: echo\r\n\r\n")
            while data := tls.recv(65536):
                tls.sendall(data)

    sluice = make(site=site(script(play).port, tls={"ca": str(authority.ca)}))
    with contextlib.closing(sluice.connect()) as sock:
        sock.settimeout(10)
        sock.sendall(b"GET /about HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                     b"Upgrade: echo\r\n\r\n")
        got = b""
        while b"\r\n\r\n" not in got:
            got += sock.recv(4096)
        assert b" 101 " in got
        for word in (b"one", b"two"):
            sock.sendall(word)
            assert sock.recv(4096) == word


def set_tls(sluice, tls):
    sluice.config["sites"][0]["origin"]["tls"] = tls
    sluice.write()


def test_reload_with_another_authority(make, authority, secure, tmp_path):
    other = Authority(tmp_path, "other")
    first, second = (one.server("IP:127.0.0.1") for one in (authority, other))
    origin = secure(first)
    sluice = make(site=site(origin.port, tls={"ca": str(authority.ca)}))
    assert status(sluice) == 200
    set_tls(sluice, {"ca": str(other.ca)})
    sluice.cli("reload")
    assert status(sluice) == 502  # neither the kept connection nor its session is relied on
    next_origin = secure(second)
    sluice.config["sites"][0]["origin"]["servers"] = [f"127.0.0.1:{next_origin.port}"]
    sluice.write()
    sluice.cli("reload")
    assert status(sluice) == 200
    set_tls(sluice, None)
    del sluice.config["sites"][0]["origin"]["tls"]
    sluice.config["sites"][0]["origin"]["servers"] = [f"127.0.0.1:{origin.port}"]
    sluice.write()
    sluice.cli("reload")
    assert status(sluice) == 502  # plain, to a server that speaks TLS
    assert sluice.stop() == 0


def test_a_reload_that_changes_the_same_file(make, authority, secure, tmp_path):
    other = Authority(tmp_path, "other")
    ca = tmp_path / "used.pem"
    ca.write_bytes(authority.ca.read_bytes())
    origin = secure(authority.server("IP:127.0.0.1"))
    sluice = make(site=site(origin.port, tls={"ca": str(ca)}))
    assert status(sluice) == 200
    ca.write_bytes(other.ca.read_bytes())
    assert status(sluice) == 200  # not read before a reload
    sluice.cli("reload")
    assert status(sluice) == 502
    ca.write_bytes(other.ca.read_bytes() + authority.ca.read_bytes())
    sluice.cli("reload")
    assert status(sluice) == 200


@pytest.mark.parametrize("text,says", [
    (None, "No such file or directory"),
    ("", "holds no certificate"),
    ("some words\n", "holds no certificate"),
    ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
     "its certificate 1 cannot be read"),
])
def test_a_file_that_is_no_use(make, authority, secure, tmp_path, text, says):
    bad = tmp_path / "bad.pem"
    if text is not None:
        bad.write_text(text)
    origin = secure(authority.server("IP:127.0.0.1"))
    sluice = make(site=site(origin.port, tls={"ca": str(authority.ca)}))
    set_tls(sluice, {"ca": str(bad)})
    for command in ("check", "reload"):
        run = sluice.cli(command, check=False)
        assert run.returncode == 1
        found = re.search(r"sluice\.yaml:(\d+):(\d+): sites\[0\]\.origin\.tls\.ca: (.*)",
                          run.stdout + run.stderr)
        assert found, run
        line = sluice.path.read_text().split("\n")[int(found[1]) - 1]
        assert line[int(found[2]) - 1:].startswith(json.dumps(str(bad)))
        assert f"{bad}: {says}" in found[3]
    assert status(sluice) == 200  # nothing has changed
