"""Goal: the two example brands are fit to be seen, on phone and desktop, light and dark, in both
languages; the pictures are left in build/screens/ to be looked at."""
import pytest
from browser import LANGUAGES
from crowd import Crowd
from sluice import ROOT, Origin, Sluice, room
from test_screens import look, set_theme

CLUBS = {"football": "en", "baseball": "ja"}  # and the language of files that name none


class Clubs:
    """An appliance for each club, with rooms in states named after them."""

    def __init__(self):
        self.origin, self.sluices, self.crowds = Origin(), {}, []
        for club, language in CLUBS.items():
            sluice = Sluice(self.origin.port, rooms=[
                room("waiting", capacity=8, session="2m"), room("closed"),
                room("rejected", mode="reject")], site={
                    "pages": str(ROOT / "config" / "examples" / club),
                    "pages_language": language}).start()
            crowd = Crowd(sluice)
            crowd.enter(8, "waiting")
            crowd.wait(1284, "waiting")
            sluice.cli("room", "closed", "close")
            sluice.cli("room", "waiting", "message", "18:00")
            self.sluices[club] = sluice
            self.crowds.append(crowd)

    def close(self):
        for crowd in self.crowds:
            crowd.close()
        for sluice in self.sluices.values():
            sluice.destroy()
        self.origin.stop()


@pytest.fixture(scope="module")
def clubs():
    scene = Clubs()
    yield scene
    scene.close()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("state", ["waiting", "closed", "rejected"])
@pytest.mark.parametrize("club", CLUBS)
def test_brand(clubs, tab, club, state, language):
    visitor = tab(language)
    set_theme(visitor, "light")
    visitor.open(clubs.sluices[club].url(f"/{state}/"))
    visitor.until_state(state)
    assert visitor.js("return document.querySelector('.club img').naturalWidth") > 0
    look(visitor, f"{club}-{state}-{language}")
    assert visitor.complaints() == []
