"""Goal: a visitor with a code finds where it is asked for, is told what is wrong with it, and is in
the lane with it, in both languages; the pictures are left in build/screens/ to be looked at."""
import pytest
from browser import LANGUAGES
from sluice import room
from test_screens import look, set_size, set_theme, SIZES

WRONG = {"en": "This code is not known", "ja": "このコードは確認できません"}
FIELD = "return document.getElementById('code')?.value"


@pytest.fixture
def sluice(make):
    one = make(rooms=[room(mode="always", capacity=1, rate="1/min",
                           lanes=[{"name": "members", "codes": "members.txt"}])], start=False)
    (one.folder / "members.txt").write_text("7GQX-4TRM-2K\nV4P8-N6KD-9B\n")
    return one.start()


def send(visitor, code):
    visitor.js("document.getElementById('code').value = arguments[0];"
               "document.querySelector('button').click()", code)


@pytest.mark.parametrize("language", LANGUAGES)
def test_from_the_queue_into_the_lane(sluice, tab, crowd, language):
    crowd(sluice).wait(3)
    visitor = tab(language)
    set_theme(visitor, "light")
    set_size(visitor, SIZES["phone"])
    visitor.open(sluice.url("/derby/"))
    visitor.until_state("waiting")
    visitor.js("document.getElementById('codes').click()")
    visitor.until(lambda: visitor.js(FIELD) == "")
    assert visitor.headings() and visitor.state() == "invitation"
    look(visitor, f"invitation-{language}")
    send(visitor, "7GQX-4TRM-2L")
    visitor.until(lambda: WRONG[language] in visitor.body())
    look(visitor, f"invitation-unknown-{language}")
    send(visitor, "7gqx 4trm 2k")
    visitor.until(lambda: visitor.state() in ("waiting", "next") or visitor.session())
    assert sluice.show("room", "derby/members")["codes_used"] == 1
    assert not visitor.js("return document.getElementById('codes')")


def test_a_link_with_the_code(sluice, tab):
    visitor = tab()
    visitor.open(sluice.url("/.sluice/derby/code?code=V4P8-N6KD-9B"))
    visitor.until(lambda: visitor.js(FIELD) == "V4P8-N6KD-9B")
    assert sluice.show("room", "derby/members")["codes_used"] == 0
    visitor.js("document.querySelector('button').click()")
    visitor.until(lambda: sluice.show("room", "derby/members")["codes_used"] == 1)
    visitor.open(sluice.url('/.sluice/derby/code?code="><b id="x">'))
    assert visitor.js(FIELD) == '"><b id="x">' and not visitor.js(
        "return document.getElementById('x')")
