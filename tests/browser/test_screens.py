"""Goal: every page is fit to be seen, on phone and desktop, light and dark, in every language: the
page that comes along and the two example brands. The pictures are left in build/screens/ to be
looked at; what a program can judge of them is judged here: nothing is blank, wider than the window,
cut off, or too pale to read.

A sheet has all states of one design beside each other, as `sluice page preview` writes them: a
picture for each would take minutes. What only happens to a page that is open is pictured as it
happens.
"""
import base64
import contextlib
import os
import pathlib
import struct
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from browser import LANGUAGES
from sluice import BINARY, ROOT, room

SCREENS = pathlib.Path(BINARY).parent / "screens"
SIZES = {"phone": (390, 844), "desktop": (1280, 800)}
NARROW = (320, 640)  # WCAG 2.1, 1.4.10: nothing is lost down to this width
SAID = {"en": "Gates open at 18:00. Bring your ticket and a photo ID; large bags stay outside: "
              "https://tickets.example/what-to-bring/a-very-long-address-that-has-no-break",
        "ja": "開場は18時です。チケットと身分証明書をお持ちください。大きな荷物はお預かりできません。"}
LONG = os.environ.get("SLUICE_TESTS_LONG") == "1"
WAITING = 1284  # before the visitor
STATES = ("prequeue", "before", "waiting", "next", "expired", "closed", "full", "rejected", "error",
          "invitation")
BRANDS = ROOT / "config" / "examples"
DESIGNS = {"plain": {}, "football": {"pages": str(BRANDS / "football")},
           "baseball": {"pages": str(BRANDS / "baseball"), "pages_language": "ja"}}

# Elements that show text: wider than the window, wider than what shows them, or of a contrast
# below 4.5 (WCAG 2.1, 1.4.3) to what is behind them.
FAULTS = """
    const faults = [], width = document.documentElement.clientWidth;
    const parts = color => (color.match(/[\\d.]+/g) || []).map(Number);
    const linear = c => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
    const behind = e => {
        for (; e; e = e.parentElement) {
            const color = parts(getComputedStyle(e).backgroundColor);
            if (color.length == 3 || color[3] == 1)
                return color;
        }
        return [255, 255, 255];
    };
    if (document.documentElement.scrollWidth > width)
        faults.push('the page scrolls sideways');
    for (const e of document.body.querySelectorAll('*')) {
        if (!e.checkVisibility() || e.id == 'live')
            continue;
        const box = e.getBoundingClientRect();
        const own = [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim());
        const name = `${e.tagName} ${e.id} ${e.textContent.trim().slice(0, 40)}`;
        if (box.left < 0 || box.right > width + .5)
            faults.push('beyond the window: ' + name);
        if (own && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display != 'inline')
            faults.push('cut off: ' + name);
        if (!own)
            continue;
        const a = light(parts(getComputedStyle(e).color)), b = light(behind(e));
        const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (contrast < 4.5)
            faults.push(`contrast ${contrast.toFixed(2)}: ` + name);
    }
    return faults;"""


# All pages of a sheet as frames, so many in a row, so wide, and each as high as it needs.
SHEET = """<!doctype html><link rel="icon" href="data:,"><style>
body {{ margin: 0; display: flex; flex-wrap: wrap }} iframe {{ border: 0 }}</style>{}"""
FIT = """
    const [columns, width] = arguments, frames = [...document.querySelectorAll('iframe')];
    document.body.style.width = columns * width + 'px';
    for (const frame of frames) {
        const page = frame.contentDocument;
        frame.style.width = width + 'px';
        frame.style.height = '9em';
        frame.style.height = page.documentElement.scrollHeight + 'px';
        page.getElementById('live')?.remove(); // it is out of sight
    }
    return frames.every(frame => frame.contentDocument.readyState == 'complete' &&
        [...frame.contentDocument.images].every(image => image.naturalWidth > 0));"""
JUDGE = """
    return [...document.querySelectorAll('iframe')].flatMap(frame => {
        const faults = new frame.contentWindow.Function(arguments[0])();
        if (![...frame.contentDocument.querySelectorAll('h1')].some(h => h.checkVisibility()))
            faults.push('says nothing');
        return faults.map(fault => frame.id + ': ' + fault);
    });"""


class Previews:
    """A server of what `sluice page preview` writes, by design, state and language, and of sheets
    of them. The pages do not ask for a while."""

    def __init__(self, sluice):
        self.sluice, self.pages, previews = sluice, {}, self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments):
                pass

            def do_GET(self):
                body, kind = previews.answer(self.path, self.headers.get("Referer", ""))
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                with contextlib.suppress(BrokenPipeError):  # it went on to another page
                    self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path, referer):
        if "/assets/" in path:
            design = "football" if "football" in referer else "baseball"
            return (BRANDS / design / "assets" / "crest.svg").read_bytes(), "image/svg+xml"
        return self.pages[path].encode(), "text/html; charset=utf-8"

    def states(self, design, language):
        """Its pages, if it has some. Returns their paths."""
        for state in STATES:
            path = f"/{design}/{state}/{language}"
            if path not in self.pages:
                run = self.sluice.cli("page", "preview", design, state, "--lang", language,
                                      check=False)
                assert run.returncode == 0 or "no such page" in run.stderr, run.stderr
                self.pages[path] = run.stdout.replace('="10 ', '="100')
            if self.pages[path]:
                yield path

    def sheet(self, design, language):
        path = f"/sheet/{design}/{language}"
        self.pages[path] = SHEET.format("".join(
            f'<iframe id="{path}" src="{path}"></iframe>'
            for path in self.states(design, language)))
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def previews(make):
    sluice = make(start=False, rooms=[room(design, **keys) for design, keys in DESIGNS.items()])
    sluice.write()
    made = Previews(sluice)
    yield made
    made.close()


def is_blank(png):
    """A picture without writing has few different bytes, once each is told from its neighbour, as
    PNG's filters do."""
    at, data = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        data += png[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += length + 12
    return len(set(zlib.decompress(data))) < 128


def set_size(visitor, size):
    width, height = size
    visitor.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height,
                deviceScaleFactor=1, mobile=width < 600)


def set_theme(visitor, theme):
    """And no motion, which a picture would catch half way."""
    visitor.cdp("Emulation.setEmulatedMedia", features=[
        {"name": "prefers-color-scheme", "value": theme},
        {"name": "prefers-reduced-motion", "value": "reduce"}])


def take(visitor, name):
    SCREENS.mkdir(exist_ok=True)
    png = base64.b64decode(visitor.cdp("Page.captureScreenshot", captureBeyondViewport=True,
                                       optimizeForSpeed=True)["data"])
    (SCREENS / f"{name}.png").write_bytes(png)
    assert not is_blank(png)


def look(visitor, name, sizes=("phone", "desktop"), themes=("light", "dark")):
    """Take a picture in each size and theme, and judge it."""
    for theme in themes:
        set_theme(visitor, theme)
        for size in sizes:
            set_size(visitor, SIZES[size])
            assert visitor.js(FAULTS) == []
            take(visitor, f"{name}-{size}-{theme}")
    set_size(visitor, NARROW)
    assert visitor.js(FAULTS) == []


def look_at_sheet(visitor, size, themes):
    """Judge all states at once, and take a picture in each of these themes."""
    columns = {"phone": 5, "desktop": 3}.get(size, 5)
    width = {"phone": 390, "desktop": 760}.get(size, NARROW[0])  # beyond that there is only space
    set_size(visitor, (columns * width, 800))
    visitor.until(lambda: visitor.js(FIT, columns, width))
    for theme in ("light", "dark"):
        set_theme(visitor, theme)
        assert visitor.js(JUDGE, FAULTS) == []
        if theme in themes:
            name = visitor.address().rsplit("/", 2)[1:]
            take(visitor, "-".join([*name, size, theme]))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("design", DESIGNS)
def test_every_state(previews, tab, design, language):
    """On a desktop each language in a theme of its own; in both with SLUICE_TESTS_LONG=1."""
    visitor = tab(language).open(previews.sheet(design, language))
    look_at_sheet(visitor, "narrow", ())
    look_at_sheet(visitor, "phone", ("light", "dark"))
    desktop = ("light", "dark") if LONG else {"en": ["light"], "ja": ["dark"]}[language]
    look_at_sheet(visitor, "desktop", desktop)


@pytest.mark.parametrize("language", ("de", "zh", *(
    pytest.param(name, marks=pytest.mark.long) for name in ("es", "fr", "ko", "pt"))))
def test_every_other_language(previews, tab, language):
    visitor = tab().open(previews.sheet("plain", language))
    look_at_sheet(visitor, "narrow", ())
    look_at_sheet(visitor, "phone", ["light"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_may_happen_meanwhile(make, crowd, tab, language):
    """A message, no network, no cookies."""
    sluice = make(rooms=[room("waiting", capacity=8, session="2m")])
    others = crowd(sluice)
    others.enter(8, "waiting")
    others.wait(WAITING, "waiting")
    visitor = tab(language)
    set_theme(visitor, "light")
    visitor.open(sluice.url("/waiting/"))
    visitor.until_state("waiting")
    sluice.cli("room", "waiting", "message", SAID[language])
    visitor.sleep(minutes=2)
    visitor.until(lambda: visitor.text("message"))
    look(visitor, f"message-{language}")
    visitor.offline(True)
    visitor.sleep(minutes=2)
    visitor.until(lambda: visitor.text("offline"))
    look(visitor, f"offline-{language}", sizes=["phone"])
    visitor.js("sessionStorage.sluiceLost = 1")
    visitor.forget_cookies()
    visitor.offline(False)
    visitor.until(lambda: visitor.text("cookies"))
    look(visitor, f"cookies-{language}", sizes=["phone"])
