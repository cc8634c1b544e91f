"""Goal: visitors come over TLS, and what is true of them in plain is true of them there."""
import contextlib
import json
import re
import socket
import ssl
import subprocess
import time

import httpx
import pytest
from authority import Authority, openssl
from sluice import BROWSER, free_port, room, token, wait_for

NAMES = "DNS:localhost,DNS:tickets.example,IP:127.0.0.1"
GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
HEALTH = GET % (b"/.sluice/health", b"")


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "root")


def entry(pair, ocsp=None):
    files = {"certificate": str(pair[0]), "key": str(pair[1])}
    return dict(files, ocsp=str(ocsp)) if ocsp else files


class Secured:
    """An appliance with a listener for TLS (`tls_port`) and a plain one (`port`)."""

    def __init__(self, make, pairs, listen=None, **keys):
        self.tls_port, port = free_port(), free_port()
        self.sluice = make(listen=[
            dict({"address": f"127.0.0.1:{self.tls_port}", "tls": [entry(p) for p in pairs]},
                 **(listen or {})),
            {"address": f"127.0.0.1:{port}"}], **keys)
        self.sluice.port = port

    def counters(self):
        return {line["counter"]: line["value"] for line in self.sluice.show("counters")
                if line["part"] == "visitor_tls"}

    def connect(self, context, name="localhost", session=None, first=b""):
        plain = socket.create_connection(("127.0.0.1", self.tls_port), timeout=10)
        plain.sendall(first)
        return context.wrap_socket(plain, server_hostname=name, session=session)

    def tls(self, pairs):
        """Name other certificates in the file."""
        self.sluice.config["listen"][0]["tls"] = [entry(p) for p in pairs]
        self.sluice.write()


@pytest.fixture
def secured(make, authority):
    def start(*pairs, **keys):
        return Secured(make, pairs or [authority.pair(NAMES)], **keys)
    return start


def ask(stream, request=HEALTH):
    """One answer with a Content-Length on a connection that goes on."""
    stream.sendall(request)
    got = b""
    while b"\r\n\r\n" not in got:
        piece = stream.recv(65536)
        assert piece, got
        got += piece
    head, body = got.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
    while len(body) < length:
        body += stream.recv(65536)
    return head.decode(), body


def subject_names(stream):
    return {name for _, name in stream.getpeercert()["subjectAltName"]}


def test_curl(secured, authority):
    one = secured()
    run = subprocess.run(["curl", "-si", "--http1.1", "--cacert", str(authority.ca),
                          f"https://localhost:{one.tls_port}/.sluice/health"],
                         capture_output=True, text=True, check=True)
    assert run.stdout.startswith("HTTP/1.1 200")
    run = subprocess.run(["curl", "-s", f"https://localhost:{one.tls_port}/"],
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
    run = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{one.tls_port}",
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

def session_of(one, context):
    with one.connect(context) as stream:
        ask(stream)  # the ticket of TLS 1.3 comes after the handshake
        return stream.session


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
    return httpx.Client(base_url=f"https://localhost:{one.tls_port}", verify=authority.client(),
                        headers=BROWSER, timeout=10, **keys)


def cookies(answer):
    return {line.split("=")[0]: line for line in answer.headers.get_list("set-cookie")}


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
            assert answer.headers["location"] == f"https://127.0.0.1:8443{target}"
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
    one = secured(site={"https": "redirect"}, top={"trusted_proxies": ["127.0.0.0/8"]})
    with httpx.Client(base_url=one.sluice.url(""), headers=BROWSER) as client:
        assert client.get("/about").headers["location"] == "https://127.0.0.1/about"
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


# ---- Reloads ----

def serial(one, context, name="localhost"):
    with one.connect(context, name) as stream:
        return stream.getpeercert()["serialNumber"]


def test_a_reload_swaps_certificates_while_connections_go_on(secured, authority):
    first, second = authority.pair(NAMES), authority.pair(NAMES)
    one = secured(first)
    context = authority.client()
    before = serial(one, context)
    session = session_of(one, context)
    with one.connect(context) as stream:
        ask(stream)
        one.tls([second, authority.pair("DNS:shop.example")])
        one.sluice.cli("reload")
        assert ask(stream)[0].startswith("HTTP/1.1 200")
        assert serial(one, context) != before
        with one.connect(context, "shop.example") as other:
            assert ask(other)
        assert ask(stream)
        with one.connect(context, session=session) as other:
            assert other.session_reused  # sessions outlive certificates
            ask(other)
    assert one.sluice.stop() == 0


def test_a_reload_reads_the_same_files_anew(secured, authority):
    used, other = authority.pair(NAMES), authority.pair(NAMES)
    one = secured(used)
    context = authority.client()
    before = serial(one, context)
    for old, new in zip(used, other):
        old.write_bytes(new.read_bytes())
    assert serial(one, context) == before
    one.sluice.cli("reload")
    assert serial(one, context) != before


def test_a_listener_becomes_plain_and_back(secured, authority):
    pair = authority.pair(NAMES)
    one = secured(pair)
    with one.connect(authority.client()) as stream:
        ask(stream)
        del one.sluice.config["listen"][0]["tls"]
        one.sluice.write()
        one.sluice.cli("reload")
        with contextlib.closing(socket.create_connection(("127.0.0.1", one.tls_port))) as plain:
            assert ask(plain)
            one.tls([pair])
            one.sluice.cli("reload")
            assert ask(plain)
        assert ask(stream)
    assert serial(one, authority.client())


def test_listeners_keep_their_certificates_when_the_file_moves_them(secured, authority):
    pair = authority.pair(NAMES)
    one = secured(pair)
    one.sluice.config["listen"].insert(0, {"address": f"127.0.0.1:{free_port()}"})
    one.sluice.write()
    assert "need a restart:\nlisten\n" in one.sluice.cli("reload").stdout
    assert serial(one, authority.client())
    with httpx.Client(base_url=one.sluice.url("")) as client:
        assert client.get("/about").status_code == 200
    del one.sluice.config["listen"][1]  # that of TLS: until the restart it stays
    one.sluice.write()
    one.sluice.cli("reload")
    assert serial(one, authority.client())


def complaint(sluice, command, key):
    """What check or reload says of a key, which stands where it says."""
    run = sluice.cli(command, check=False)
    found = re.search(r"sluice\.yaml:(\d+):(\d+): ((?:warning: )?)listen\[0\]\.tls\[0\]\." + key +
                      ": (.*)", run.stdout + run.stderr)
    assert found, run
    line = sluice.path.read_text().split("\n")[int(found[1]) - 1]
    value = sluice.config["listen"][0]["tls"][0][key]
    assert line[int(found[2]) - 1:].startswith(json.dumps(value))
    return run.returncode, found[3] + found[4]


def bad_files(authority, folder):
    good, other = authority.pair(NAMES), authority.pair(NAMES)
    encrypted, weak = folder / "encrypted.key", (folder / "weak.pem", folder / "weak.key")
    openssl("ec", "-in", good[1], "-aes128", "-passout", "pass:x", "-out", encrypted)
    openssl("req", "-x509", "-newkey", "rsa:1024", "-nodes", "-subj", "/CN=weak", "-out", weak[0],
            "-keyout", weak[1])
    edwards = (folder / "ed.pem", folder / "ed.key")
    openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=ed", "-out", edwards[0],
            "-keyout", edwards[1])
    return [
        ("certificate", (folder / "none.pem", good[1]), "No such file or directory"),
        ("certificate", (good[1], good[1]), "holds no certificate"),
        ("certificate", weak, "key too small"),
        ("key", (good[0], folder / "none.key"), "No such file or directory"),
        ("key", (good[0], other[1]), "is not the certificate's key"),
        ("key", (good[0], good[0]), "holds no key that can be read"),
        ("key", (good[0], encrypted), "is encrypted"),
        ("key", edwards, "is neither RSA nor EC"),
    ]


def test_files_that_are_no_use(secured, authority, tmp_path):
    one = secured()
    before = serial(one, authority.client())
    for key, pair, says in bad_files(authority, tmp_path):
        one.tls([pair])
        for command in ("check", "reload"):
            status, text = complaint(one.sluice, command, key)
            assert status == 1
            assert says in text and "allowed: " in text
    assert serial(one, authority.client()) == before  # nothing has changed


def test_an_expired_certificate_is_a_warning(secured, authority, tmp_path):
    one = secured()
    old = (tmp_path / "old.pem", tmp_path / "old.key")
    request = tmp_path / "old.csr"
    openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-out",
            request, "-keyout", old[1])
    openssl("x509", "-req", "-in", request, "-CA", authority.ca, "-CAkey", authority.key,
            "-CAcreateserial", "-days", "-1", "-out", old[0])
    one.tls([old])
    for command in ("check", "reload"):
        status, text = complaint(one.sluice, command, "certificate")
        assert status == 0
        assert text.startswith("warning: ") and text.endswith(f"{old[0]}: has expired")
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        one.connect(authority.client())


# ---- Stapling ----

def response(authority, folder, pair, *more):
    """The authority's word on a certificate, in a file."""
    name = folder / f"{len(list(folder.glob('*.der')))}.der"
    number = openssl("x509", "-in", pair[0], "-noout", "-serial").stdout.decode().split("=")[1]
    index = folder / "index.txt"
    index.write_text(f"V\t351231235959Z\t\t{number.strip()}\tunknown\t/CN=server\n")
    openssl("ocsp", "-index", index, "-CA", authority.ca, "-rsigner", authority.ca, "-rkey",
            authority.key, "-issuer", authority.ca, "-cert", pair[0], "-respout", name, "-no_nonce",
            *(more or ("-ndays", "2")))
    return name


def stapled(one, authority):
    run = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{one.tls_port}",
                          "-status", "-CAfile", str(authority.ca), "-servername", "localhost"],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return "OCSP Response Status: successful" in run.stdout


def test_stapling(secured, authority, tmp_path):
    pair, other = authority.pair(NAMES), authority.pair(NAMES)
    one = secured(pair)
    assert not stapled(one, authority)
    files = one.sluice.config["listen"][0]["tls"][0]
    files["ocsp"] = str(response(authority, tmp_path, pair))
    one.sluice.write()
    one.sluice.cli("reload")
    assert stapled(one, authority)
    for name, says in [(response(authority, tmp_path, other), "is about another certificate"),
                       (pair[0], "is no OCSP response"), (tmp_path / "none", "No such file")]:
        files["ocsp"] = str(name)
        one.sluice.write()
        for command in ("check", "reload"):
            status, text = complaint(one.sluice, command, "ocsp")
            assert status == 1 and says in text
    assert stapled(one, authority)


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
    wait_for(lambda: one.counters()["cut"] + 1 and serial(one, authority.client()), 5)


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
        with contextlib.closing(socket.create_connection(("127.0.0.1", one.tls_port))) as slow:
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
    with contextlib.closing(socket.create_connection(("127.0.0.1", one.tls_port))) as slow:
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
    with contextlib.closing(socket.create_connection(("127.0.0.1", one.tls_port))) as sock:
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
    run = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{one.tls_port}", "-tls1_2",
                          "-CAfile", str(authority.ca)], input="R\n", capture_output=True,
                         text=True, timeout=10, check=False)
    assert "no renegotiation" in run.stderr


def test_a_drain_ends_connections_over_tls(secured, authority):
    one = secured()
    with one.connect(authority.client()) as stream:
        ask(stream)
        assert one.sluice.stop() == 0
        assert reset_or_ended(stream)


# ---- The user that sluice becomes ----

def test_keys_are_read_before_privileges_are_dropped(secured, authority):
    pair = authority.pair(NAMES)
    one = secured(pair, top={"user": "nobody"}, folder_mode=0o755)
    assert serial(one, authority.client())
    assert f"{pair[1]}: Permission denied: a reload will fail" in one.sluice.read_log()
    run = one.sluice.cli("reload", check=False)
    assert run.returncode == 1
    assert "Permission denied" in run.stdout + run.stderr
    assert serial(one, authority.client())


# ---- The outside's judgement ----

def test_testssl(secured, authority, tmp_path):
    one = secured(authority.pair(NAMES, "ec"), authority.pair(NAMES, "rsa"))
    report = tmp_path / "report.json"
    subprocess.run(["testssl", "--quiet", "--color", "0", "--warnings", "off", "--fast", "--nodns",
                    "none", "--ip", "127.0.0.1", "-p", "-s", "-f", "-P", "-U", "--jsonfile",
                    str(report), f"localhost:{one.tls_port}"], capture_output=True, timeout=300,
                   check=False)
    found = json.loads(report.read_text())
    assert len(found) > 30
    bad = [(line["id"], line["severity"], line["finding"]) for line in found
           if line["severity"] in ("MEDIUM", "HIGH", "CRITICAL", "FATAL")]
    assert bad == []
