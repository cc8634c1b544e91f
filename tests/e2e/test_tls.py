"""Goal: visitors come over TLS, and what is true of them in plain is true of them there."""
import concurrent.futures
import contextlib
import json
import signal
import socket
import ssl
import subprocess
import time

import httpx
import network
import pytest
from network import VISITORS
from secured import HEALTH, GET, NAMES, Secured, ask, serial, session_of
from sluice import BROWSER, room, token, wait_for


def subject_names(stream):
    return {name for _, name in stream.getpeercert()["subjectAltName"]}


def test_curl(secured, authority):
    one = secured()
    run = subprocess.run(["curl", "-si", "--http1.1", "--cacert", str(authority.ca),
                          one.url("/.sluice/health")],
                         capture_output=True, text=True, check=True)
    assert run.stdout.startswith("HTTP/1.1 200")
    run = subprocess.run(["curl", "-s", one.url("/")],
                         capture_output=True, check=False)
    assert run.returncode == 60  # not trusted by the system


@pytest.mark.parametrize("kind", ["ec", "rsa"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_and_both_kinds_of_key(secured, authority, version, kind):
    one = secured(authority.pair(NAMES, kind))
    context = authority.client()
    context.minimum_version = context.maximum_version = version
    with one.connect(context) as stream:
        for _ in range(3):
            assert ask(stream)[0].startswith("HTTP/1.1 200")
        assert stream.cipher()[2] >= 128
        assert stream.selected_alpn_protocol() is None
    assert one.counters()["handshakes"] == 1


@pytest.mark.parametrize("version", ["tls1", "tls1_1"])
def test_older_versions_are_refused(secured, version):
    one = secured()
    run = subprocess.run(["openssl", "s_client", "-connect", one.address,
                          f"-{version}", "-cipher", "ALL:@SECLEVEL=0"], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, check=False)
    assert "alert protocol version" in run.stderr
    assert one.counters()["handshake_protocol"] == 1


def test_protocols(secured, authority):
    one = secured()
    context = authority.client()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with one.connect(context) as stream:
        assert stream.selected_alpn_protocol() == "http/1.1"
        assert ask(stream)
    context.set_alpn_protocols(["h2"])
    with pytest.raises(ssl.SSLError, match="no application protocol"):
        one.connect(context)


def test_the_certificate_follows_the_name(secured, authority):
    one = secured(authority.pair("DNS:localhost"), authority.pair("DNS:shop.example"),
                  authority.pair("DNS:*.shop.example"), authority.pair("DNS:vip.shop.example"))
    for name, expected in [("localhost", "localhost"), ("shop.example", "shop.example"),
                           ("SHOP.example", "shop.example"), ("a.shop.example", "*.shop.example"),
                           ("vip.shop.example", "vip.shop.example")]:
        with one.connect(authority.client(), name) as stream:
            assert subject_names(stream) == {expected}
            assert ask(stream)
    for name in ("nobody.example", "a.b.shop.example"):  # the first one, which is not theirs
        with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
            one.connect(authority.client(), name)
    context = authority.client()
    context.check_hostname = False
    with one.connect(context, None) as stream:
        assert subject_names(stream) == {"localhost"}


def test_two_kinds_of_key_for_one_name(secured, authority):
    one = secured(authority.pair(NAMES, "rsa"), authority.pair(NAMES, "ec"))
    context = authority.client()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with one.connect(context) as stream:
        assert "ECDSA" in stream.cipher()[0]
    context.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
    with one.connect(context) as stream:
        assert ask(stream)


# ---- Sessions ----

@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed_by_all_workers_and_after_a_restart(secured, authority, version):
    one = secured(top={"workers": [0, 1]})
    context = authority.client()
    context.minimum_version = context.maximum_version = version
    session = session_of(one, context)
    for _ in range(16):  # the kernel spreads connections over the workers
        with one.connect(context, session=session) as stream:
            assert stream.session_reused
            ask(stream)
    assert one.counters()["resumed"] == 16
    assert {line["requests"] > 0 for line in one.sluice.show("workers")} == {True}
    assert one.sluice.stop() == 0
    one.sluice.start()
    with one.connect(context, session=session) as stream:
        assert stream.session_reused
        ask(stream)
    assert one.counters()["resumed"] == 1


def test_seeds_of_ticket_keys_stay_in_the_store(secured, authority):
    one = secured()
    session_of(one, authority.client())
    one.sluice.stop()
    store = one.sluice.folder / "state" / "sluice.db"
    rows = subprocess.run(["sqlite3", str(store), "SELECT epoch, length(key) FROM tickets"],
                          capture_output=True, text=True, check=True).stdout.split()
    now = int(time.time()) // 43200
    assert [row.split("|") for row in rows] == [[str(now), "32"], [str(now + 1), "32"]]
    assert store.stat().st_mode & 0o777 == 0o600


def test_a_ticket_of_somebody_else_means_a_whole_handshake(secured, make, authority):
    pair = authority.pair(NAMES)
    one, other = secured(pair), Secured(make, [pair])
    context = authority.client()
    session = session_of(one, context)
    with other.connect(context, session=session) as stream:
        assert not stream.session_reused
        assert ask(stream)


# ---- What is known of the connection ----

def browser(one, authority, **keys):
    return httpx.Client(base_url=one.url(""), verify=authority.client(),
                        headers=BROWSER, timeout=10, **keys)


def cookies(answer):
    return {line.split("=")[0]: line for line in answer.headers.get_list("set-cookie")}


@pytest.mark.smoke
def test_a_visit(secured, authority, origin):
    one = secured(rooms=[room(capacity=1)])
    with browser(one, authority) as first, browser(one, authority) as second:
        answer = first.get("/derby/")
        assert answer.text.startswith("shop:")
        assert origin.header("X-Forwarded-Proto") == ["https"]
        assert "proto=https" in origin.header("Forwarded")[0]
        line = cookies(answer)["sluice-p-derby"]
        assert "; Secure" in line and "SameSite=None" in line and "HttpOnly" in line
        answer = second.get("/derby/")
        assert answer.headers["sluice-state"] == "waiting"
        line = cookies(answer)["sluice-t-derby"]
        assert "; Secure" in line and "SameSite=Lax" in line
        assert second.get("/.sluice/derby/status").json()["position"] == 1
        assert first.post("/.sluice/derby/leave").status_code == 204
        wait_for(lambda: second.get("/.sluice/derby/status").json()["state"] == "admitted", 10)
        assert second.get("/derby/").text.startswith("shop:")


def test_the_same_site_attribute_is_the_sites_choice(secured, authority):
    one = secured(site={"pass_same_site": "strict"})
    with browser(one, authority) as first:
        assert "SameSite=Strict" in cookies(first.get("/derby/"))["sluice-p-derby"]


def test_bodies_both_ways(secured, authority, origin):
    one = secured()
    body = bytes(range(256)) * (16 << 10)
    with browser(one, authority) as first:
        first.get("/derby/")
        assert first.get("/derby/big").content == b"x" * (8 << 20)
        assert first.post("/derby/upload", content=body).status_code == 200
        assert origin.seen[-1]["body"] == body


@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "tls"])
def test_a_body_behind_a_request_that_waits_for_control(secured, authority, origin, is_secure):
    """All of the body that the network holds is there when the worker comes to read the head."""
    one = secured(rooms=[room(session="16s", sliding=True)])
    body = bytes(range(256)) * (4 << 10)
    url = one.url("") if is_secure else one.sluice.url("")
    with httpx.Client(base_url=url, verify=authority.client(), headers=BROWSER,
                      timeout=30) as first, \
            concurrent.futures.ThreadPoolExecutor() as pool:
        first.get("/derby/")
        ends = token(first.cookies["sluice-p-derby"])["expires"]
        time.sleep(ends - 6.5 - time.time())  # its second half: the pass is renewed first
        while token(first.cookies["sluice-p-derby"])["expires"] == ends:  # control was too busy
            assert time.time() < ends - 1
            first.get("/.sluice/health")
            one.sluice.process.send_signal(signal.SIGSTOP)
            try:
                post = pool.submit(first.post, "/derby/upload", content=body)
                time.sleep(0.1)
            finally:
                one.sluice.process.send_signal(signal.SIGCONT)
            assert post.result(30).text != "shop:none\n"
            assert origin.seen[-1]["body"] == body


def test_a_slow_reader_stops_the_origin(secured, authority):
    one = secured()
    with one.connect(authority.client()) as stream:
        stream.sendall(GET % (b"/big", b"Connection: close\r\n"))
        time.sleep(0.5)
        got = b""
        while piece := stream.recv(1 << 16):
            got += piece
    assert got.endswith(b"x" * (8 << 20))


def test_pipelined_and_in_pieces(secured, authority):
    one = secured()
    with one.connect(authority.client()) as stream:
        stream.sendall(HEALTH * 40)
        got = b""
        while got.count(b"HTTP/1.1 200") < 40 or not got.endswith(b"}"):
            got += stream.recv(65536)
        for i in range(len(HEALTH)):  # a record for each byte
            stream.sendall(HEALTH[i:i + 1])
        assert stream.recv(65536).startswith(b"HTTP/1.1 200")


def test_the_proxy_protocol_comes_before_tls(secured, authority, origin):
    one = secured(listen={"proxy_protocol": True})
    first = b"PROXY TCP4 192.0.2.77 192.0.2.1 4711 443\r\n"
    with one.connect(authority.client(), first=first) as stream:
        stream.sendall(GET % (b"/about", b"Connection: close\r\n"))
        assert stream.recv(65536).startswith(b"HTTP/1.1 200")
    assert origin.header("X-Forwarded-For") == ["192.0.2.77"]
    assert origin.header("X-Forwarded-Proto") == ["https"]


# ---- https: redirect, hsts ----

def test_redirect_to_https(secured, authority, origin):
    one = secured(site={"https": "redirect", "https_port": 8443})
    with httpx.Client(base_url=one.sluice.url(""), headers=BROWSER) as client:
        for method, target in [("GET", "/derby/?a=1&b=%20"), ("POST", "/about"), ("HEAD", "/"),
                               ("GET", "/.sluice/derby/status")]:
            answer = client.request(method, target)
            assert answer.status_code == 308
            assert answer.headers["location"] == f"https://{one.sluice.host}:8443{target}"
            assert "strict-transport-security" not in answer.headers
        assert client.get("/.sluice/health").status_code == 200
        assert client.get("/", headers={"Host": "nobody.example"}).status_code == 421
        assert client.get("/derby/", headers={"X-Forwarded-Proto": "https"}).status_code == 308
        assert client.get("/" + "x" * 8000).status_code == 400
    assert origin.seen == []
    with browser(one, authority) as first:
        assert first.get("/derby/").status_code == 200
    assert {"sent_to_https": 5}.items() <= {
        line["counter"]: line["value"] for line in one.sluice.show("counters")}.items()


def test_redirect_to_the_usual_port_and_not_behind_a_proxy(secured, origin):
    one = secured(site={"https": "redirect"}, top={"trusted_proxies": VISITORS})
    with httpx.Client(base_url=one.sluice.url(""), headers=BROWSER) as client:
        assert client.get("/about").headers["location"] == f"https://{one.sluice.host}/about"
        assert client.get("/about", headers={"X-Forwarded-Proto": "https"}).status_code == 200


def test_hsts_is_told_over_tls_alone(secured, authority):
    one = secured(site={"hsts": "1y"}, rooms=[room(capacity=1)])
    expected = "max-age=31536000"
    with browser(one, authority) as first, browser(one, authority) as second:
        for answer in (first.get("/derby/"), first.get("/derby/"), first.get("/about"),
                       second.get("/derby/"), second.get("/.sluice/derby/status")):
            assert answer.headers.get_list("strict-transport-security") == [expected]
        answer = first.get("/derby/cookie")
        assert answer.headers["cache-control"] == "public, max-age=60"  # nothing but that added
    with httpx.Client(base_url=one.sluice.url(""), headers=BROWSER) as client:
        for path in ("/derby/", "/about", "/.sluice/derby/status"):
            assert "strict-transport-security" not in client.get(path).headers


# ---- Limits and nonsense ----

def reset_or_ended(stream):
    with contextlib.suppress(ConnectionResetError):
        return stream.recv(4096) == b""
    return True


def test_connections_beyond_the_limit_are_reset(secured, authority):
    one = secured(top={"workers": [0], "tls_connections": 3})
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            assert ask(stack.enter_context(one.connect(authority.client())))
        with pytest.raises((ConnectionResetError, ssl.SSLError)):
            one.connect(authority.client())
        assert one.counters()["stream_none"] == 1
        with httpx.Client(base_url=one.sluice.url("")) as client:
            assert client.get("/about").status_code == 200  # plain ones are not concerned

    def is_served():
        with contextlib.suppress(ConnectionError, ssl.SSLError):  # till the others' ends are seen
            return serial(one, authority.client())

    wait_for(is_served, 5)


def test_a_source_has_its_share_before_any_handshake(secured, authority):
    one = secured(top={"workers": [0], "connections_per_source": 2})
    with contextlib.ExitStack() as stack:
        for _ in range(2):  # they say nothing
            stack.enter_context(one.connect_plain())
        with pytest.raises((ConnectionResetError, ssl.SSLError)):
            one.connect(authority.client())
    wait_for(lambda: one.counters()["handshake_cut"] == 2, 5)
    assert serial(one, authority.client())
    assert {line["counter"]: line["value"] for line in one.sluice.show("counters")
            if line["part"] == "worker"}["source_full"] == 1


def test_who_says_nothing_makes_room(secured, authority):
    one = secured(top={"workers": [0], "connections": 64, "connections_per_source": 64})
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(one.connect_plain()) for _ in range(64)]
        with one.connect(authority.client()) as stream:
            assert ask(stream)
        silent[0].settimeout(5)
        assert reset_or_ended(silent[0])


def test_handshakes_over_the_rate_wait_for_their_turn(secured, authority):
    one = secured(top={"workers": [0], "tls_handshakes": 10})
    context = authority.client()
    began = time.monotonic()
    for _ in range(8):
        with one.connect(context) as stream:
            assert ask(stream)
    assert 0.55 < time.monotonic() - began < 3
    assert one.counters()["put_off"] >= 5


def test_a_handshake_has_a_deadline(secured, authority):
    one = secured(top={"http": {"head_timeout": "300ms"}})
    for first in (b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
        with contextlib.closing(one.connect_plain()) as slow:
            slow.settimeout(5)
            slow.sendall(first)
            assert reset_or_ended(slow)
    assert one.counters()["handshake_late"] == 2
    with one.connect(authority.client()) as stream:
        time.sleep(0.2)
        assert ask(stream)  # a head has its own


def test_a_handshake_in_slow_bytes(secured, authority):
    one = secured()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = authority.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.closing(one.connect_plain()) as slow:
        slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                break
            for byte in outgoing.read():
                slow.sendall(bytes([byte]))
                time.sleep(0.0005)
            incoming.write(slow.recv(4096))
        tls.write(HEALTH)
        slow.sendall(outgoing.read())
        got = b""
        while b"HTTP/1.1 200" not in got:
            incoming.write(slow.recv(4096))
            with contextlib.suppress(ssl.SSLWantReadError):
                got += tls.read(4096)


@pytest.mark.parametrize("garbage", [
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x00\x02\x01\x00",  # a record too short for the message's head
    b"\x16\x03\x01\x02\x00\x01\x02\x00\x00",  # a hello of 128 kB
    b"\x80\x2e\x01\x00\x02" + b"\0" * 43,  # SSL 2
    b"\x15\x03\x01\x00\x02\x02\x28",  # an alert
    bytes(range(256)) * 8,
], ids=["http", "short", "huge", "ssl2", "alert", "noise"])
def test_garbage(secured, authority, garbage):
    one = secured()
    with contextlib.closing(one.connect_plain()) as sock:
        sock.settimeout(5)
        sock.sendall(garbage)
        if len(garbage) == 7 and garbage[0] == 0x16:
            sock.sendall(b"\x16\x03\x01\x00\x02\x00\x00")
        with contextlib.suppress(ConnectionResetError):
            while sock.recv(4096):
                pass
    counted = one.counters()
    assert counted["handshake_protocol"] == 1, counted
    assert ask(one.connect(authority.client()))


def test_renegotiation_is_refused(secured, authority):
    one = secured()
    run = subprocess.run(["openssl", "s_client", "-connect", one.address, "-tls1_2",
                          "-CAfile", str(authority.ca)], input="R\n", capture_output=True,
                         text=True, timeout=10, check=False)
    assert "no renegotiation" in run.stderr


def test_a_drain_ends_connections_over_tls(secured, authority):
    one = secured()
    with one.connect(authority.client()) as stream:
        ask(stream)
        assert one.sluice.stop() == 0
        assert reset_or_ended(stream)


# ---- The outside's judgement ----

@pytest.mark.long
def test_testssl(secured, authority, tmp_path):
    one = secured(authority.pair(NAMES, "ec"), authority.pair(NAMES, "rsa"))
    report = tmp_path / "report.json"
    family = ["-6"] if network.FAMILY == "6" else []
    subprocess.run(["testssl", *family, "--quiet", "--color", "0", "--warnings", "off", "--fast",
                    "--nodns", "none", "--ip", one.sluice.address, "-p", "-s", "-f", "-P", "-U",
                    "--jsonfile", str(report), f"localhost:{one.tls_port}"],
                   capture_output=True, timeout=1200, check=False)
    found = json.loads(report.read_text())
    assert len(found) > 30
    bad = [(line["id"], line["severity"], line["finding"]) for line in found
           if line["severity"] in ("MEDIUM", "HIGH", "CRITICAL", "FATAL")]
    assert bad == []
