"""Goal: certificates are checked, stapled, and read anew while connections go on."""
import contextlib
import json
import re
import ssl
import subprocess

import httpx
import pytest
from authority import openssl
from secured import NAMES, ask, serial, session_of
from sluice import free_port


# ---- Reloads ----

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
        with contextlib.closing(one.connect_plain()) as plain:
            assert ask(plain)
            one.tls([pair])
            one.sluice.cli("reload")
            assert ask(plain)
        assert ask(stream)
    assert serial(one, authority.client())


def test_listeners_keep_their_certificates_when_the_file_moves_them(secured, authority):
    pair = authority.pair(NAMES)
    one = secured(pair)
    one.sluice.config["listen"].insert(0, {"address": f"{one.sluice.host}:{free_port()}"})
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
    run = subprocess.run(["openssl", "s_client", "-connect", one.address,
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
