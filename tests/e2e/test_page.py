"""Goal: the queue page as bytes: its header fields, its encodings, its size; contract section 2."""
import base64
import gzip
import hashlib
import html.parser
import json
import re

import brotli
import pytest
from sluice import BROWSER, ROOT, room

DECODERS = {"br": brotli.decompress, "gzip": gzip.decompress, None: bytes}
ANSWER_BYTES_MAX = 12000
TEXTS = {path.stem: json.loads(path.read_text())
         for path in sorted((ROOT / "controlplane" / "pages").glob("*.json"))}
LANGUAGES = list(TEXTS)
# The numbers that differ from poll to poll, what fills their slots up, and sections that are not
# shown.
CHANGING = re.compile(rb"[0-9][0-9.,:]*| +|<!-- *-->|\n+")


def fetch(visitor, path="/derby/", **headers):
    """An answer and its body as it was sent, not decoded."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    with visitor.client.stream("GET", path, headers=headers) as answer:
        return answer, b"".join(answer.iter_raw())


@pytest.fixture
def queue(make, visitor):
    """queue(ROOM…) is an appliance with that room full, and the visitor who is first in line."""
    def start(**keys):
        sluice = make(rooms=[room(**{"capacity": 1, **keys})])
        visitor(sluice).get("/derby/")
        return sluice, visitor(sluice)
    return start


class Parts(html.parser.HTMLParser):
    """The content of the elements of one name; every attribute that fetches or runs something."""

    def __init__(self, page, wanted=None):
        super().__init__()
        self.wanted, self.inside, self.found, self.attributes = wanted, False, [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.inside = tag == self.wanted
        self.attributes += [(tag, name, value) for name, value in attributes]
        if self.inside:
            self.found.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.found[-1] += data


def test_header_fields(queue):
    sluice, one = queue()
    answer, body = fetch(one)
    fields = answer.headers
    assert answer.status_code == 200
    assert fields["content-type"] == "text/html; charset=utf-8"
    assert fields["cache-control"] == "no-store"
    assert fields["x-robots-tag"] == "noindex"
    assert fields["sluice-state"] == "waiting"
    assert fields["content-language"] == "en"
    assert fields["x-content-type-options"] == "nosniff"
    assert 1 <= int(fields["retry-after"]) <= 60
    assert int(fields["content-length"]) == len(body)
    assert {"accept", "accept-language", "accept-encoding"} <= set(
        fields["vary"].lower().replace(" ", "").split(","))
    assert fields["set-cookie"].startswith("sluice-t-derby=")
    assert not {"refresh", "etag", "last-modified", "location", "age"} & set(fields)


def test_content_security_policy(queue):
    """Script and style are allowed by their hash, and by nothing else."""
    sluice, one = queue()
    answer, _ = fetch(one, accept_encoding="identity")
    page = fetch(one, accept_encoding="identity")[1].decode()
    policy = dict(part.strip().split(" ", 1)
                  for part in answer.headers["content-security-policy"].split(";"))
    hashes = {name: " ".join(
        "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
        for text in Parts(page, name).found) for name in ("script", "style")}
    assert policy == {
        "default-src": "'none'", "script-src": hashes["script"], "style-src": hashes["style"],
        "img-src": "'self' data:", "connect-src": "'self'", "base-uri": "'none'",
        "form-action": "'self'", "frame-ancestors": "'self'"}
    for tag, name, value in Parts(page).attributes:
        assert name != "style" and not name.startswith("on"), (tag, name)
        if name in ("src", "href"):
            assert value == "" or value.startswith("data:"), (tag, value)


@pytest.mark.parametrize("accepted,sent", [
    ("br", "br"), ("gzip", "gzip"), ("identity", None), ("", None), ("deflate", None),
    ("gzip, deflate, br, zstd", "br"), ("br;q=0, gzip", "gzip"), ("br;q=0.2, gzip;q=0.8", "gzip"),
    ("*", "br"), ("*;q=0", None), ("x-gzip", "gzip"),
])
def test_encodings(queue, accepted, sent):
    """Whatever is asked for, it is the same page."""
    sluice, one = queue()
    plain = fetch(one, accept_encoding="identity")[1]
    answer, body = fetch(one, accept_encoding=accepted)
    assert answer.headers.get("content-encoding") == sent
    decoded = DECODERS[sent](body)
    assert CHANGING.sub(b"", decoded) == CHANGING.sub(b"", plain)
    assert len(body) <= len(plain) if sent is None else len(body) < len(plain) / 2


LANGUAGES_WISHED = {
    "en-GB,en;q=0.9": "en", "ja": "ja", "ja-JP,ja;q=0.9,en;q=0.8": "ja", "en;q=0.5,ja;q=0.6": "ja",
    "en,ja": "en", "ja,en": "ja", "de,fr;q=0.5": "de", "fr;q=0.9,de;q=0.95": "de", "pt-BR": "pt",
    "zh-TW,zh;q=0.9,en;q=0.8": "zh", "nl,ko;q=0.2": "ko", "nl,is;q=0.9": "en", "": "en", "*": "en",
    "en;q=0,*;q=0.5,es;q=0.4": "ja", "es-419, en;q=0.1": "es",
}


def test_languages(queue):
    sluice, one = queue()
    for wished, language in LANGUAGES_WISHED.items():
        answer, body = fetch(one, accept_language=wished, accept_encoding="identity")
        assert answer.headers["content-language"] == language, wished
        assert f'<html lang="{language}">'.encode() in body


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_word_is_missing(make, language):
    """Every state has its words in every language, and none of another's."""
    sluice, texts, english = make(start=False), TEXTS[language], TEXTS["en"]
    sluice.write()
    assert texts.keys() == english.keys() and all(texts.values())
    for state in ("prequeue", "before", "waiting", "next", "expired", "closed", "full", "rejected"):
        page = html.unescape(sluice.cli(
            "page", "preview", "derby", state, "--lang", language).stdout)
        words = [f"{state}.title", f"{state}.text", "room", "place", "ahead", "keep", "offline"]
        words += ["prequeue.salt"] if state == "prequeue" else []
        assert [key for key in words if texts[key] not in page] == []
        assert language == "en" or [key for key in words if english[key] in page] == []


def test_size(queue):
    """With its head, the longest message, and everybody's numbers at their longest slots: each
    language fits into the first flight of a connection."""
    sluice, one = queue()
    sluice.cli("room", "derby", "message", "m" * 500)
    for language in LANGUAGES:
        check_size(sluice, one, language)


def check_size(sluice, one, language):
    got = sluice.raw(b"GET /derby/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
              b"Accept: text/html\r\nAccept-Language: %s\r\n\r\n" % language.encode())
    assert b"m" * 500 in got
    assert len(got) < ANSWER_BYTES_MAX
    for encoding in ("br", "gzip"):
        body = fetch(one, accept_language=language, accept_encoding=encoding)[1]
        assert len(body) < ANSWER_BYTES_MAX / 2


@pytest.mark.parametrize("status", [200, 202, 429, 503])
def test_queue_status(queue, status):
    """The room's status is that of the page and of its JSON, and of nobody who is let in."""
    sluice, one = queue(queue_status=status)
    answer, body = fetch(one)
    assert answer.status_code == status
    assert answer.headers["sluice-state"] == "waiting"
    assert answer.headers["retry-after"] and body
    asked = one.get("/derby/", headers={"Accept": "application/json"})
    assert asked.status_code == status and asked.json()["state"] == "waiting"
    assert one.status().status_code == 200


@pytest.mark.parametrize("command,keys,state", [
    (("close",), {}, "closed"), (("mode", "reject"), {}, "rejected"),
    (None, {"line_max": 1}, "full"),
])
def test_states_without_a_place(queue, visitor, command, keys, state):
    sluice, one = queue(**keys)
    one.get("/derby/")
    if command:
        sluice.cli("room", "derby", *command)
    late = visitor(sluice)
    answer, body = fetch(late, accept_encoding="identity")
    assert answer.headers["sluice-state"] == state
    assert re.search(rb'data-state="%s *"' % state.encode(), body)
    assert "set-cookie" not in answer.headers
    assert 45 <= int(answer.headers["retry-after"]) <= 60


def test_message_is_text(queue):
    sluice, one = queue()
    said = "<img src=x onerror=alert(1)> & \"quotes\" 'too' {{state}}"
    sluice.cli("room", "derby", "message", said)
    page = fetch(one, accept_encoding="identity")[1].decode()
    assert "<img" not in page
    assert said in html.unescape(page)
    assert one.status().json()["message"] == said


def test_neither_head_nor_subrequest_sees_it(queue):
    sluice, one = queue()
    for method, mode in (("HEAD", "navigate"), ("GET", "no-cors")):
        answer = one.client.request(method, "/derby/", headers=dict(
            BROWSER, **{"Sec-Fetch-Mode": mode}))
        assert answer.status_code == 503 and b"<script" not in answer.content
