"""Goal: whoever gathers before the doors sees a countdown by the server's clock, is drawn, and has
a place without loading the page; whoever is next, or finds the shop away, is told so."""
import datetime
import time

from browser import LIVE
from sluice import ROOT, Origin, room
from test_screens import look

HOUR_MS = 3600000


def moment(seconds):
    """So many seconds from now, as the configuration has it, and as a number."""
    at = int(time.time()) + seconds
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat(), at


def left(visitor):
    """What the countdown shows, in seconds; what it says once there is nothing left to count."""
    text = visitor.text("countdown")
    parts = text.split(":")
    return sum(int(n) * unit for n, unit in zip(parts, (3600, 60, 1))) if len(parts) == 3 else text


def test_from_the_countdown_to_the_draw(make, tab):
    """One visitor, two tabs, as on machines whose clocks are an hour early and late."""
    opens, opens_at = moment(3600)
    sluice = make(rooms=[room(capacity=1, opens=opens, prequeue="2h")])
    tabs = [tab(), tab()]
    for one, wrong_ms in zip(tabs, (HOUR_MS, -HOUR_MS)):
        one.focus().before_scripts(f"window.slept = {wrong_ms}")
        one.open(sluice.url("/derby/")).mark()
        assert one.state() == "prequeue"
        one.until(lambda: abs(left(one) - (opens_at - time.time())) < 2)
    assert "The draw uses no public number" in tabs[0].focus().body()

    # It is said anew when the doors open.
    opens, opens_at = moment(10)
    sluice.config["sites"][0]["rooms"][0]["opens"] = opens
    sluice.write()
    sluice.cli("reload")
    for one in tabs:
        one.focus().sleep(minutes=2)
        one.until(lambda: abs(left(one) - (opens_at - time.time())) < 2)
    visitor = tabs[0].focus()
    look(visitor, "gathered-en", sizes=["phone"], themes=["light"])

    # At zero it asks for a moment; then there is the place, the same in both.
    visitor.until(lambda: left(visitor) == "a moment…")
    assert time.time() > opens_at - 2
    sluice.cli("room", "derby", "pause")  # or they would be in the shop soon
    visitor.until(lambda: time.time() > opens_at + 3)
    for one in tabs:
        one.focus().sleep(minutes=2)
        one.until(lambda: one.state() in ("waiting", "next"))
        assert one.is_marked() and one.text("place") == "1"
        assert one.js(LIVE).startswith(one.headings()[0])
    look(visitor.focus(), "drawn-en", sizes=["phone"], themes=["light"])


def test_it_gathers_by_itself(make, tab):
    """Before anybody may gather the page counts down and holds nothing; then it takes part."""
    opens, _ = moment(3600)
    sluice = make(rooms=[room(capacity=1, opens=opens)])
    visitor = tab().open(sluice.url("/derby/"))
    assert visitor.state() == "before" and 3500 < left(visitor) <= 3600
    assert visitor.cookie("sluice-t-derby") is None
    sluice.config["sites"][0]["rooms"][0]["prequeue"] = "2h"
    sluice.write()
    sluice.cli("reload")
    visitor.sleep(minutes=2)
    visitor.until_state("prequeue")
    assert visitor.cookie("sluice-t-derby") and 3400 < left(visitor) <= 3600


def test_a_public_salt(make, tab):
    """The note goes once a salt is named."""
    opens, _ = moment(600)
    sluice = make(rooms=[room(capacity=1, opens=opens, prequeue="1h")])
    visitor = tab().open(sluice.url("/derby/"))
    assert "The draw uses no public number" in visitor.body()
    sluice.cli("room", "derby", "salt", "00c0ffee")
    visitor.until(lambda: "public number" not in visitor.open(sluice.url("/derby/")).body())
    assert visitor.state() == "prequeue" and left(visitor) > 500


def test_who_is_next(make, tab, crowd):
    """Called, and no room yet: told at once and aloud, and not told to close the page."""
    sluice = make(rooms=[room(capacity=1)])
    others = crowd(sluice)
    inside = others.enter()[0]
    visitor = tab().open(sluice.url("/derby/"))
    visitor.mark()
    assert "You can close it" in visitor.body()
    sluice.cli("room", "derby", "release", "9")
    visitor.sleep(minutes=2)
    visitor.until_state("next")
    assert visitor.is_marked() and visitor.headings() == ["You are next"]
    assert visitor.title() == "You are next" and visitor.js(LIVE) == "You are next"
    assert visitor.text("place") == "1" and visitor.text("ahead") is None
    assert "You can close it" not in visitor.body()
    others.leave(inside)
    visitor.sleep(minutes=2)
    visitor.until_shop()


def test_the_shop_is_away(make, tab, origin):
    """The page says so, with the club's words, and takes the visitor in when the shop is back."""
    sluice = make(rooms=[room()], site={"pages": str(ROOT / "config" / "examples" / "football")})
    port = origin.port
    origin.stop()
    visitor = tab().open(sluice.url("/derby/seats"))
    assert visitor.headings() == ["Our shop is on the bench"] and "502" in visitor.body()
    back = Origin(port=port)
    try:
        visitor.until_shop(30)
        assert visitor.address() == sluice.url("/derby/seats")
    finally:
        back.stop()


def test_keys_and_motion(make, tab):
    """A key finds the one link, which shows it; whoever wants no motion sees none."""
    sluice = make(rooms=[room(mode="reject")])
    visitor = tab().open(sluice.url("/derby/"))
    visitor.cdp("Emulation.setFocusEmulationEnabled", enabled=True)
    visitor.js("document.querySelector('[data-for~=rejected] a').focus({focusVisible: true})")
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert visitor.js(outline) == "solid"
    moves = "return getComputedStyle(document.querySelector('.top i')).animationName"
    assert visitor.js(moves) == "pulse"
    visitor.cdp("Emulation.setEmulatedMedia", features=[
        {"name": "prefers-reduced-motion", "value": "reduce"}])
    assert visitor.js(moves) == "none"
