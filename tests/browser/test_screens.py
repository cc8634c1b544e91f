"""Goal: every state of the page is fit to be seen, on phone and desktop, light and dark, in both
languages. The pictures are left in build/screens/ to be looked at; what a program can judge of
them is judged here: nothing is blank, wider than the window, cut off, or too pale to read."""
import base64
import pathlib
import struct
import time
import zlib

import pytest
from browser import LANGUAGES
from crowd import Crowd
from sluice import BINARY, Origin, Sluice, room, token, wait_for

SCREENS = pathlib.Path(BINARY).parent / "screens"
SIZES = {"phone": (390, 844), "desktop": (1280, 800)}
NARROW = (320, 640)  # WCAG 2.1, 1.4.10: nothing is lost down to this width
SAID = {"en": "Gates open at 18:00. Bring your ticket and a photo ID; large bags stay outside: "
              "https://tickets.example/what-to-bring/a-very-long-address-that-has-no-break",
        "ja": "開場は18時です。チケットと身分証明書をお持ちください。大きな荷物はお預かりできません。"}
WAITING = 1284  # before the visitor

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


class Scenes:
    """An appliance whose rooms are each in a state of their own, named after it."""

    def __init__(self):
        self.origin = Origin()
        self.sluice = Sluice(self.origin.port, rooms=[
            room("waiting", capacity=8, session="2m"), room("next", capacity=1),
            room("expired", capacity=1, session="1s"), room("closed"),
            room("full", capacity=1, line_max=1), room("rejected", mode="reject")]).start()
        self.others = Crowd(self.sluice)
        self.others.enter(8, "waiting")
        self.others.wait(WAITING, "waiting")
        for name in ("next", "full"):
            self.others.enter(1, name)
        self.others.wait(1, "full")
        self.over = self.others.enter(1, "expired")[0]
        for command in (("expired", "pause"), ("closed", "close"), ("next", "release", "9")):
            self.sluice.cli("room", *command)
        wait_for(lambda: time.time() > token(self.over)["expires"], 5)

    def enter(self, visitor, state):
        set_theme(visitor, "light")
        visitor.open(self.sluice.url(f"/{state}/"))
        if state == "next":
            self.sluice.cli("room", "next", "release", "9")
        if state == "expired":
            visitor.forget_cookies()
            visitor.cdp("Network.setCookie", url=self.sluice.url("/"), name="sluice-p-expired",
                        value=self.over)
        visitor.until_state(state)

    def say(self, text):
        self.sluice.cli("room", "waiting", "message", text)

    def destroy(self):
        self.others.close()
        self.sluice.destroy()
        self.origin.stop()


@pytest.fixture(scope="module")
def scenes():
    made = Scenes()
    yield made
    made.destroy()


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


def look(visitor, name):
    """Take a picture in each size and theme, and judge it."""
    SCREENS.mkdir(exist_ok=True)
    for theme in ("light", "dark"):
        set_theme(visitor, theme)
        for size in SIZES:
            set_size(visitor, SIZES[size])
            assert visitor.js(FAULTS) == []
            shot = visitor.cdp("Page.captureScreenshot", captureBeyondViewport=True,
                               optimizeForSpeed=True)["data"]
            png = base64.b64decode(shot)
            (SCREENS / f"{name}-{size}-{theme}.png").write_bytes(png)
            assert not is_blank(png)
    set_size(visitor, NARROW)
    assert visitor.js(FAULTS) == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("state", ["next", "expired", "closed", "full", "rejected"])
def test_states(scenes, tab, state, language):
    visitor = tab(language)
    scenes.enter(visitor, state)
    look(visitor, f"{state}-{language}")


@pytest.mark.parametrize("language", LANGUAGES)
def test_waiting(scenes, tab, language):
    """And what may happen meanwhile: a message, no network, no cookies."""
    scenes.say("")
    visitor = tab(language)
    scenes.enter(visitor, "waiting")
    look(visitor, f"waiting-{language}")
    scenes.say(SAID[language])
    visitor.sleep(minutes=2)
    visitor.until(lambda: visitor.text("message"))
    look(visitor, f"waiting-message-{language}")
    visitor.offline(True)
    visitor.sleep(minutes=2)
    visitor.until(lambda: visitor.text("offline"))
    look(visitor, f"waiting-offline-{language}")
    visitor.js("sessionStorage.sluiceLost = 1")
    visitor.forget_cookies()
    visitor.offline(False)
    visitor.until(lambda: visitor.text("cookies"))
    look(visitor, f"waiting-cookies-{language}")
