"""Goal: whatever happens to browser, network or appliance, the page keeps the place, says what is
the matter, and goes on by itself."""
import time

import pytest
from browser import Browser, Tab
from sluice import room, token, wait_for


@pytest.fixture
def one_place(make, crowd):
    """A full room with one place, and the visitor's tab will be first in line. Returns the
    appliance, and what lets the visitor in."""
    sluice = make(rooms=[room(capacity=1)])
    others = crowd(sluice)
    inside = others.enter()[0]
    return sluice, lambda: others.leave(inside)


def wait_in_line(tab, sluice, path="/derby/"):
    visitor = tab().open(sluice.url(path))
    assert visitor.state() == "waiting"
    visitor.mark()
    return visitor


def offline_for(visitor, let_in, seconds):
    place = visitor.text("place")
    visitor.offline(True)
    visitor.until(lambda: visitor.text("offline"))
    assert visitor.js("return document.documentElement.className") == "off"  # the dot shows it
    let_in()
    time.sleep(seconds)
    assert visitor.state() == "waiting" and visitor.is_marked()
    assert visitor.text("place") == place
    visitor.offline(False)
    visitor.until_shop()


def test_offline(one_place, tab):
    """Called while there is no network: in as soon as there is one."""
    sluice, let_in = one_place
    offline_for(wait_in_line(tab, sluice), let_in, 8)


@pytest.mark.long
def test_offline_for_a_minute(one_place, tab):
    sluice, let_in = one_place
    offline_for(wait_in_line(tab, sluice), let_in, 60)


@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.long), "kill"])
def test_the_appliance_starts_again(one_place, tab, end):
    sluice, let_in = one_place
    visitor = wait_in_line(tab, sluice)
    place = visitor.text("place")
    getattr(sluice, end)()
    visitor.until(lambda: visitor.text("offline"))
    sluice.start()
    visitor.until(lambda: visitor.text("offline") is None)
    assert visitor.text("place") == place and visitor.is_marked()
    let_in()
    visitor.until_shop()


def test_sleep(one_place, tab):
    """The lid is closed for ten minutes. What is due then is asked for at once: here the next look
    at a closed room, which is 45 to 60 s away."""
    sluice, let_in = one_place
    visitor = wait_in_line(tab, sluice)
    place = visitor.text("place")
    sluice.cli("room", "derby", "close")
    visitor.until_state("closed")
    sluice.cli("room", "derby", "open")
    time.sleep(2)
    assert visitor.state() == "closed"  # not due
    visitor.sleep(minutes=10)
    visitor.until_state("waiting", 5)
    assert visitor.text("place") == place
    visitor.js("window.slept = 0")  # and a clock that is set back does not silence the page
    let_in()
    visitor.until_shop()


def test_sleep_of_a_page_without_a_place(make, tab):
    """It is loaded again when due, and at once after a sleep; but a page that has no network stays
    and says so, since a browser's own page about that would not go on by itself."""
    sluice = make(rooms=[room(mode="reject")])
    visitor = tab().open(sluice.url("/derby/"))
    assert visitor.state() == "rejected"
    visitor.mark()
    visitor.offline(True)
    visitor.sleep(minutes=10)
    visitor.until(lambda: visitor.text("offline"))
    assert visitor.is_marked()
    sluice.cli("room", "derby", "mode", "auto")
    visitor.offline(False)
    visitor.sleep(minutes=10)
    visitor.until_shop(5)


def test_frozen_tab(one_place, tab):
    """The browser freezes a tab that nobody looks at. It was called meanwhile."""
    sluice, let_in = one_place
    visitor = wait_in_line(tab, sluice)
    visitor.frozen(True)
    let_in()
    time.sleep(3)  # some polls, were it not frozen
    assert sluice.show("room", "derby")["sessions"] == 0
    visitor.frozen(False)
    visitor.until_shop()


def test_back_and_forward(one_place, tab):
    """Away from the queue and back: the same place, and the page goes on. From the shop, back
    leads to what was before the queue, since the shop took its place in the history."""
    sluice, let_in = one_place
    visitor = tab().open(sluice.url("/about"))
    visitor.open(sluice.url("/derby/?row=7#front"))
    place = visitor.text("place")
    assert place
    visitor.open(sluice.url("/terms"))
    visitor.driver.back()
    visitor.until_state("waiting")
    assert visitor.text("place") == place
    visitor.driver.back()
    visitor.until(lambda: visitor.address().endswith("/about"))
    visitor.driver.forward()
    visitor.until_state("waiting")
    let_in()
    visitor.until_shop()
    assert visitor.address() == sluice.url("/derby/?row=7#front")
    visitor.driver.back()
    visitor.until(lambda: visitor.address().endswith("/about"))
    visitor.driver.forward()
    visitor.until_shop()
    assert visitor.address() == sluice.url("/derby/?row=7#front")


def test_called_while_away(one_place, tab):
    """Back in the queue page when the turn has come: in."""
    sluice, let_in = one_place
    visitor = wait_in_line(tab, sluice, "/derby/seats")
    visitor.open(sluice.url("/terms"))
    let_in()
    visitor.driver.back()
    visitor.until_shop()
    assert visitor.address() == sluice.url("/derby/seats")


def test_woken_from_the_history(one_place, tab):
    """A page that comes back from the back/forward cache asks at once, though nothing is due."""
    sluice, _ = one_place
    visitor = wait_in_line(tab, sluice)
    sluice.cli("room", "derby", "close")
    visitor.until_state("closed")
    sluice.cli("room", "derby", "open")
    visitor.frozen(True)
    visitor.sleep(minutes=10)
    visitor.frozen(False)
    visitor.js("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    visitor.until_state("waiting", 5)


def test_expired_and_again(make, tab, crowd):
    """410: the page says so, asks no more, and a press of its button joins at the end."""
    sluice = make(rooms=[room(capacity=1, session="1s")])
    others = crowd(sluice)
    over = others.enter()[0]
    sluice.config["sites"][0]["rooms"][0]["session"] = "10m"
    sluice.write()
    sluice.cli("reload")
    wait_for(lambda: time.time() > token(over)["expires"] + 0.5, 5)
    others.enter()
    visitor = wait_in_line(tab, sluice, "/derby/?row=7#front")
    place = visitor.text("place")
    visitor.forget_cookies()
    visitor.cdp("Network.setCookie", url=sluice.url("/"), name="sluice-p-derby", value=over)
    visitor.until_state("expired")
    assert visitor.is_marked()
    assert visitor.headings() == ["Your turn has passed"]
    assert visitor.title() == "Your turn has passed"
    visitor.driver.find_element("link text", "Join again").click()
    visitor.until_state("waiting")
    assert int(visitor.text("place")) > int(place)
    assert visitor.address() == sluice.url("/derby/?row=7#front")


@pytest.mark.long
def test_expired_turn(make, tab, crowd):
    """As above, by a turn that was really missed."""
    sluice = make(rooms=[room(capacity=1, claim="1s")])
    others = crowd(sluice)
    inside = others.enter()[0]
    visitor = wait_in_line(tab, sluice)
    visitor.frozen(True)
    others.leave(inside)
    time.sleep(75)  # the claim, and the longest that anybody may have been told after the start
    visitor.frozen(False)
    visitor.until_state("expired")


def test_cookies_deleted(one_place, tab):
    """401: joins again, once. Again before a place was seen, it says that cookies are not kept;
    when they are, that is forgotten."""
    sluice, _ = one_place
    visitor = wait_in_line(tab, sluice)
    later = str(int(visitor.text("place")) + 1)
    visitor.forget_cookies()
    visitor.until(lambda: visitor.text("place") == later)
    assert visitor.text("cookies") is None
    ticket = visitor.cookie("sluice-t-derby")
    visitor.mark()
    visitor.forget_cookies()
    visitor.sleep(minutes=2)
    visitor.until(lambda: visitor.text("cookies"))
    assert visitor.is_marked() and visitor.text("place") == later
    visitor.cdp("Network.setCookie", url=sluice.url("/"), name="sluice-t-derby", value=ticket)
    visitor.sleep(minutes=2)
    visitor.until(lambda: visitor.text("cookies") is None)
    assert visitor.is_marked() and visitor.js("return sessionStorage.length") == 0


def test_cookies_refused(one_place):
    """A browser that keeps no cookies is told, and does not turn round for ever."""
    sluice, _ = one_place
    browser = Browser({"profile.default_content_setting_values.cookies": 2})
    try:
        visitor = Tab(browser).open(sluice.url("/derby/"))
        visitor.mark()
        visitor.until(lambda: visitor.text("cookies"))
        assert visitor.is_marked()
        assert visitor.complaints() == []
    finally:
        browser.quit()


def test_paused_and_resumed(one_place, tab):
    """While the room is paused a free place is nobody's; nothing is lost."""
    sluice, let_in = one_place
    visitor = wait_in_line(tab, sluice)
    place = visitor.text("place")
    sluice.cli("room", "derby", "pause")
    let_in()
    visitor.until(lambda: visitor.state() in ("waiting", "next"))
    time.sleep(2)  # two polls
    assert visitor.is_marked() and visitor.text("place") == place
    sluice.cli("room", "derby", "resume")
    visitor.until_shop()


@pytest.mark.parametrize("command,state", [
    (("close",), "closed"), (("mode", "reject"), "rejected")])
def test_takes_nobody(one_place, tab, command, state):
    """Whoever waits is told by the page of that state, which loads itself; so is whoever comes."""
    sluice, _ = one_place
    visitor = wait_in_line(tab, sluice)
    sluice.cli("room", "derby", *command)
    visitor.until_state(state)
    assert not visitor.is_marked()  # its words are not in the page of those who wait
    heading = visitor.headings()
    assert [visitor.title()] == heading  # which is read aloud of a page that loads
    visitor.forget_cookies()
    visitor.open(sluice.url("/derby/"))
    assert visitor.state() == state and visitor.headings() == heading
    assert visitor.cookie("sluice-t-derby") is None


def test_full(make, tab, crowd):
    """No more places: the page says so, and its button tries again."""
    sluice = make(rooms=[room(capacity=1, line_max=1)])
    others = crowd(sluice)
    inside = others.enter()[0]
    waits = others.wait()[0]
    visitor = tab().open(sluice.url("/derby/"))
    assert visitor.state() == "full" and visitor.headings() == ["The line is full"]
    others.leave(inside)
    others.follow(waits)
    visitor.driver.find_element("link text", "Try again").click()
    visitor.until_state("waiting")
