"""Goal: whoever comes with a browser sees where they stand, waits, and is taken in by the page."""
import re

import pytest
from browser import LANGUAGES, LIVE
from sluice import room, wait_for

WORDS = {
    "en": {"heading": "You are in line", "place": "Your place",
           "wait": r"[\d.]+ to [\d.]+ (minutes|hours)"},
    "ja": {"heading": "順番をお待ちください", "place": "あなたの番号",
           "wait": r"[\d.]+〜[\d.]+(分|時間)"},
}
TARGET = "/derby/seats?row=7&to=%2Fpay#front"


@pytest.mark.parametrize("language", LANGUAGES)
def test_from_arrival_to_the_shop(make, tab, crowd, origin, language):
    sluice, words = make(rooms=[room(capacity=1)]), WORDS[language]
    others = crowd(sluice)
    inside = others.enter()[0]
    before = others.wait()[0]
    visitor = tab(language).open(sluice.url(TARGET))

    # Place, people ahead, expected wait, in their language.
    assert visitor.state() == "waiting"
    assert visitor.js("return document.documentElement.lang") == language
    assert visitor.headings() == [words["heading"]]
    assert words["place"] in visitor.body()
    place = visitor.text("place")
    assert int(place) >= 2 and visitor.text("ahead") == "1"
    assert re.fullmatch(words["wait"], visitor.text("wait"))
    assert visitor.title() == f"{place} · {words['heading']}"
    assert visitor.text("host") == f"127.0.0.1:{sluice.port}"
    assert visitor.text("message") is None
    visitor.mark()

    # Whoever was before them goes in: nobody is ahead, or they are next already. The place stays,
    # and all of it is read aloud.
    others.leave(inside)
    inside = others.follow(before)
    visitor.sleep(minutes=2)  # till the next poll
    visitor.until(lambda: visitor.text("ahead") in ("0", None))
    assert visitor.text("place") == place
    assert visitor.js(LIVE).startswith(visitor.headings()[0])

    # What the operator says is seen in the same document.
    said = "Kick-off is at <9 pm> & the \"north\" gate — 北門"
    sluice.cli("room", "derby", "message", said)
    visitor.until(lambda: visitor.text("message") == said)
    assert visitor.is_marked()

    # Called, they are in the shop, where they wanted to go.
    others.leave(inside)
    session = visitor.until_shop()
    assert visitor.address() == sluice.url(TARGET)
    assert TARGET.partition("#")[0] in [one["target"] for one in origin.seen]
    assert re.fullmatch("[0-9a-f]{16}", session)


def test_what_is_told_gets_better(make, tab, crowd):
    """The line before the visitor never grows, the bar never goes back."""
    sluice = make(rooms=[room(capacity=1)])
    others = crowd(sluice)
    inside = others.enter()[0]
    before = others.wait(4)
    visitor = tab().open(sluice.url("/derby/"))
    visitor.js("""
        const ahead = document.getElementById('ahead'), bar = document.getElementById('progress');
        const told = window.told = [[+ahead.textContent, bar.value]];
        new MutationObserver(() => told.push([+ahead.textContent, bar.value]))
            .observe(bar, {attributes: true});""")
    for left in (3, 2, 1, 0):
        others.leave(inside)
        inside = others.follow(before[3 - left])
        visitor.sleep(minutes=2)
        visitor.until(lambda: int(visitor.text("ahead") or 0) <= left)
    told = visitor.js("return window.told")
    assert told[0][0] == 4 and told[-1][0] == 0
    assert [ahead for ahead, _ in told] == sorted((ahead for ahead, _ in told), reverse=True)
    assert [bar for _, bar in told] == sorted(bar for _, bar in told)
    assert told[0][1] < told[-1][1] <= 1000


@pytest.mark.parametrize("language", LANGUAGES)
def test_without_script(make, tab, crowd, language):
    """The page loads itself again, keeps the place, and at last is the shop."""
    sluice = make(rooms=[room(capacity=1)])
    others = crowd(sluice)
    inside = others.enter()[0]
    visitor = tab(language)
    visitor.cdp("Emulation.setScriptExecutionDisabled", value=True)
    visitor.open(sluice.url(TARGET))
    assert visitor.state() == "waiting"
    assert visitor.headings() == [WORDS[language]["heading"]]
    place = visitor.text("place")
    sluice.cli("room", "derby", "message", "Soon")
    visitor.until(lambda: visitor.text("message") == "Soon")
    assert visitor.text("place") == place
    others.leave(inside)
    visitor.until_shop()
    assert visitor.address() == sluice.url(TARGET.partition("#")[0])  # nobody can know the rest


def test_two_tabs_are_one_visitor(make, tab, crowd):
    sluice = make(rooms=[room(capacity=1)])
    others = crowd(sluice)
    inside = others.enter()[0]
    tabs = [tab(), tab()]
    places = [one.focus().open(sluice.url("/derby/")).text("place") for one in tabs]
    assert places[0] == places[1]
    others.leave(inside)
    sessions = [one.focus().until_shop() for one in tabs]
    assert sessions[0] == sessions[1]
    assert wait_for(lambda: sluice.show("room", "derby"), 5)["sessions"] == 1


def test_nobody_waits_nobody_sees_a_queue(make, tab):
    sluice = make()
    visitor = tab().open(sluice.url(TARGET))
    assert visitor.session()
    assert visitor.address() == sluice.url(TARGET)
