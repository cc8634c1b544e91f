"""Goal: the pages of a site or a room are those of its folder of templates: values, sections,
languages, assets and errors, checked beforehand and changed while people wait."""
import base64
import gzip
import hashlib
import re
import shutil
import subprocess
import time

import brotli
import pytest
from sluice import BINARY, BROWSER, ROOT, room, wait_for, waited_s

pytestmark = pytest.mark.above

PAGE = """<!doctype html>
<html lang="{{lang}}"><head><title>{{title}}</title>{{>sluice_refresh}}
<style>p{color:teal}</style></head>
<body><h1>VERSION</h1><p class="{{state}}">{{room}}|{{site}}|{{position}}</p>
{{#waiting}}<p>WAITS</p>{{/waiting}}{{#closed}}<p>OVER</p>{{/closed}}
<p {{^message}}hidden{{/message}}>[{{message}}]</p>
<img src="{{asset crest.svg}}" alt="">{{>foot}}{{>sluice_script}}</body></html>
"""
CREST = '<svg xmlns="http://www.w3.org/2000/svg"/>'
FILES = {"page.html": PAGE, "_foot.html": "<footer>bye</footer>",
         "_foot.ja.html": "<footer>ja</footer>",
         "_foot.pt-br.html": "<footer>tchau</footer>", "assets/crest.svg": CREST,
         "error.html": "<!doctype html><h1>{{code}} of {{site}}</h1>"}


def lay(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def plain(text):
    """Without what slots and sections are filled up with."""
    return re.sub(r"<!-- *-->", "", text)


@pytest.fixture
def club(make):
    """club(FILES, site keys…) is an appliance whose site has those templates; everybody waits."""
    def start(files=FILES, start=True, rooms=None, **site):
        sluice = make(rooms=rooms or [room(mode="always", capacity=None, rate="1/min")],
                      site={"pages": "club", **site}, start=False)
        for one in sluice.config["sites"][0]["rooms"]:
            for key in [key for key, value in one.items() if value is None]:
                del one[key]
        lay(sluice.folder / "club", files)
        sluice.write()
        return sluice.start() if start else sluice
    return start


def test_a_template_is_served(club, visitor):
    sluice = club()
    answer = visitor(sluice).get("/derby/")
    page = plain(answer.text)
    assert "<p class=\"waiting   \">derby|shop|1</p>" in page
    assert "WAITS" in page and "OVER" not in page and "<footer>bye" in page
    assert answer.headers["content-language"] == "en"
    assert answer.headers["sluice-state"] == "waiting"
    style = hashlib.sha256(b"p{color:teal}").digest()
    assert f"style-src 'sha256-{base64.b64encode(style).decode()}'" in answer.headers[
        "content-security-policy"]
    sluice.cli("room", "derby", "message", "a <b> & 'c'")
    wait_for(lambda: "[a &lt;b&gt; &amp; &#39;c&#39;]" in plain(
        visitor(sluice).get("/derby/").text), 5)
    sluice.cli("room", "derby", "close")
    wait_for(lambda: "OVER" in visitor(sluice).get("/derby/").text, 5)


def test_every_encoding_says_the_same(club, visitor):
    sluice = club()
    sluice.cli("room", "derby", "pause")
    one, texts = visitor(sluice), {}
    for encoding, decode in (("identity", bytes), ("gzip", gzip.decompress),
                             ("br", brotli.decompress)):
        with one.client.stream("GET", "/derby/", headers={"Accept-Encoding": encoding}) as answer:
            texts[encoding] = decode(b"".join(answer.iter_raw()))
    same = [re.sub(rb"[0-9 ]+", b"", text) for text in texts.values()]
    assert same[0] == same[1] == same[2]


@pytest.mark.parametrize("wanted, said, foot", [
    ("en", "en", "bye"), ("ja", "ja", "ja"), ("ja-JP, en;q=0.5", "ja", "ja"), ("de", "en", "bye"),
    ("pt", "pt-br", "tchau"), ("pt-BR,en;q=0.9", "pt-br", "tchau"), ("ja;q=0.1, en", "en", "bye")])
def test_the_language_is_the_visitors(club, visitor, wanted, said, foot):
    answer = visitor(club()).get("/derby/", headers={"Accept-Language": wanted})
    assert answer.headers["content-language"] == said
    assert f'<html lang="{said}">' in answer.text and f"<footer>{foot}" in answer.text


def test_files_without_a_language_have_the_folders(club, visitor):
    sluice = club({"page.html": "<h1>ドア {{lang}}</h1>", "page.en.html": "<h1>door {{lang}}</h1>"},
                  pages_language="ja")
    for wanted, said in (("fr", "ドア ja"), ("en", "door en"), ("ja", "ドア ja")):
        assert said in visitor(sluice).get("/derby/", headers={"Accept-Language": wanted}).text


def test_a_room_has_its_own(club, visitor):
    sluice = club(start=False, rooms=[
        room(mode="always"), room("cup", mode="always", pages="cup")])
    lay(sluice.folder / "cup", {"waiting.html": "<h1>the cup</h1>"})
    sluice.start()
    assert "VERSION" in visitor(sluice).get("/derby/").text
    assert "the cup" in visitor(sluice).get("/cup/").text
    sluice.cli("room", "cup", "close")  # no page of its own for that: the one that comes along
    wait_for(lambda: "This event is over" in visitor(sluice).get("/cup/").text, 5)


def test_assets_are_for_ever(club, visitor):
    sluice = club()
    one = visitor(sluice)
    address = re.search(r'src="([^"]+)"', one.get("/derby/").text).group(1)
    digest = hashlib.sha256(CREST.encode()).hexdigest()[:16]
    assert address == f"/.sluice/assets/crest-{digest}.svg"
    answer = one.get(address)
    assert answer.text == CREST and answer.status_code == 200
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert "set-cookie" not in answer.headers
    head = one.client.head(address)
    assert head.content == b"" and head.headers["content-length"] == str(len(CREST))
    assert one.client.post(address).status_code == 405
    for other in ("/.sluice/assets/crest.svg", "/.sluice/assets/",
                  "/.sluice/assets/../club/page.html",
                  "/.sluice/assets/crest-0000000000000000.svg"):
        assert one.get(other).status_code == 404


def test_an_origin_that_is_down_has_a_page(club, visitor):
    sluice = club(rooms=[room(capacity=5)], start=False)
    sluice.config["sites"][0]["origin"]["servers"] = ["127.0.0.1:9"]
    sluice.start()
    for path in ("/derby/", "/elsewhere"):
        answer = visitor(sluice).get(path)
        assert answer.status_code == 502
        assert "<h1>502 of shop</h1>" in plain(answer.text).replace("shop" + " " * 59, "shop")
        assert answer.headers["cache-control"] == "no-store"
    json = visitor(sluice).get("/derby/", headers={**BROWSER, "Accept": "application/json"})
    assert json.json()["status"] == 502


MISTAKES = {
    "{{postion}}": "{{postion}}: unknown variable; the nearest known is position",
    "{{#waitng}}{{/waitng}}": "{{#waitng}}: unknown section; the nearest known is waiting",
    "{{>fot}}": "{{>fot}}: unknown partial; the nearest known is foot",
    "{{asset crst.svg}}": "{{asset crst.svg}}: unknown asset; the nearest known is crest.svg",
    "{{#next}}": "{{#next}}: the section never ends",
    "{{{room}}}": "{{{: no such form",
}
MISPLACED = {  # told when all braces are good
    "<script>{{room}}</script>": "a value or section in script or style",
    '<img src="https://elsewhere.example/x.png">': "src= fetches from elsewhere",
    "<p onclick='x()'>": "onclick= is not let in",
}


@pytest.mark.parametrize("mistakes", [MISTAKES, MISPLACED], ids=["braces", "places"])
def test_check_says_where(club, mistakes):
    page = "<!doctype html>\n" + "\n".join(mistakes)
    sluice = club({**FILES, "waiting.html": page}, start=False)
    run = sluice.cli("check", check=False)
    assert run.returncode == 1
    lines = run.stderr.splitlines()
    for number, said in enumerate(mistakes.values(), start=2):
        assert [line for line in lines
                if line.startswith(f"{sluice.folder}/club/waiting.html:{number}:") and said in line]
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize("files, said", [
    ({"wating.html": "."}, "no page is called wating; the nearest known is waiting"),
    ({"waiting.j.html": "."}, "`j` is no language"),
    ({}, "no template in it"),
    ({"page.html": "x" * 65537}, "too long; allowed: 65536 bytes"),
    ({"page.html": "x" * 24001}, "the page gets too long; allowed: 24000 bytes"),
    ({"page.html": ".", "assets/x.js": "x"}, "of no type that pages show"),
    ({"page.html": ".", "assets/x.svg": "x" * 65537}, "too large; allowed: 65536 bytes"),
    ({"page.html": ".", **{f"assets/{i}.svg": "x" * 65536 for i in range(17)}},
     "1048576 bytes in all"),
    ({"page.html": ".", **{f"assets/{i}.svg": "x" for i in range(65)}}, "65 assets; allowed: 64"),
    ({"page.html": ".", **{f"_{i}.html": "x" for i in range(100)}}, "101 templates; allowed: 100"),
    ({"page.html": ".", **{f"page.a{chr(97 + i)}.html": "x" for i in range(8)}},
     "too many languages; allowed: 8"),
])
def test_a_folder_that_is_refused(club, files, said):
    sluice = club(files, start=False)
    (sluice.folder / "club").mkdir(exist_ok=True)
    run = sluice.cli("check", check=False)
    assert run.returncode == 1 and said in run.stderr


@pytest.mark.parametrize("files", [
    {"page.html": "x" * 24000},
    {"page.html": ".", **{f"assets/{i}.svg": "x" * 65536 for i in range(16)}},
    {"page.html": ".", **{f"_{i}.html": "x" for i in range(99)}},
    {"page.html": ".", **{f"page.a{chr(97 + i)}.html": "x" for i in range(7)}},
])
def test_a_folder_at_its_limit(club, files):
    club(files, start=False).cli("check")


def test_a_reload_drops_nobody(club, visitor):
    sluice = club()
    sluice.cli("room", "derby", "pause")
    people = [visitor(sluice) for _ in range(5)]
    for one in people:
        assert "VERSION" in one.get("/derby/").text
    tickets = [one.ticket() for one in people]
    page = sluice.folder / "club" / "page.html"
    page.write_text(PAGE.replace("VERSION", "{{wrong}}"))
    run = sluice.cli("reload", check=False)
    assert run.returncode == 1 and "page.html:4:11: {{wrong}}: unknown variable" in (
        run.stdout + run.stderr)
    assert "VERSION" in people[0].get("/derby/").text
    page.write_text(PAGE.replace("VERSION", "second"))
    sluice.cli("reload")
    for number, one in enumerate(people, start=1):
        wait_for(lambda: "second" in one.get("/derby/").text, 5)
        assert one.status().json()["position"] == number
    assert [one.ticket() for one in people] == tickets
    shutil.rmtree(sluice.folder / "club")
    assert sluice.cli("reload", check=False).returncode == 1
    assert "second" in people[0].get("/derby/").text


def test_a_reload_of_many_pages_queues_nobody(make, visitor):
    """Pages are compiled between turns: control is never away for so long that workers hold."""
    names = [f"r{i}" for i in range(32)]
    sluice = make(rooms=[room(name, pages=name, capacity=1000) for name in names], start=False)

    def lay_all(version):
        for name in names:
            lay(sluice.folder / name, {f"page{language}.html": PAGE.replace("VERSION", version)
                .replace("{{>foot}}", "{{>sluice_style}}") for language in ("", ".ja", ".de")}
                | {"assets/crest.svg": CREST})

    lay_all("first")
    sluice.start()
    lay_all("second")
    began = time.monotonic()
    reload = subprocess.Popen([BINARY, "reload", "-c", str(sluice.path)])
    came, waited = 0, waited_s(sluice.process.pid)
    while reload.poll() is None:
        answer = sluice.raw(b"GET /r7/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        before, waited = waited, waited_s(sluice.process.pid)
        # But for times when control had no core.
        assert b"sluice-p-r7=" in answer or waited - before > 0.1, (came, answer)
        came += 1
    assert reload.returncode == 0
    took = time.monotonic() - began
    assert took > 0.5 and came > 10, (took, came)  # else there was nothing to wait for
    sluice.cli("room", "r7", "close")
    wait_for(lambda: "second" in visitor(sluice).get("/r7/").text, 5)


def test_preview(club):
    sluice = club(start=False)
    page = plain(sluice.cli("page", "preview", "derby", "waiting").stdout)
    assert "derby|shop|1,285" in page and "WAITS" in page and "<footer>bye" in page
    assert "<footer>ja" in sluice.cli("page", "preview", "derby", "closed", "--lang", "ja").stdout
    assert "502 of shop" in plain(sluice.cli("page", "preview", "derby", "error").stdout)
    for words, said in ((("cup", "waiting"), "no room is called cup"),
                        (("derby", "wating"), "no page is called wating; known are prequeue"),
                        (("derby", "waiting", "--lang", "fr"), "no page is in fr; known are en")):
        run = sluice.cli("page", "preview", *words, check=False)
        assert run.returncode == 1 and said in run.stderr


def test_the_example_clubs(make, visitor):
    """Both brands are good, in both languages, for every state."""
    for club, site_room, language in (("football", "derby", "en"), ("baseball", "opener", "ja")):
        sluice = make(rooms=[room(site_room, mode="always")], start=False, site={
            "pages": str(ROOT / "config" / "examples" / club), "pages_language": language})
        sluice.start()
        for wanted in ("en", "ja"):
            answer = visitor(sluice).get(f"/{site_room}/", headers={"Accept-Language": wanted})
            assert answer.headers["content-language"] == wanted
            assert re.search(r'src="/.sluice/assets/crest-[0-9a-f]{16}.svg"', answer.text)
            for state in ("prequeue", "before", "waiting", "next", "expired", "closed", "full",
                          "rejected", "error", "invitation"):
                assert f'<html lang="{wanted}">' in sluice.cli(
                    "page", "preview", site_room, state, "--lang", wanted).stdout
