"""Goal: the page speaks with one voice. What page.c writes into it and what queue.js goes on to say
are the same words for the same numbers."""
import html
import pathlib
import random
import re
import subprocess

import pytest
from browser import LANGUAGES
from sluice import BINARY, room

RENDER = pathlib.Path(BINARY).parent / "tests" / "browser" / "render"
PLACES = (1, 2, 999, 1000, 1001, 47382, 999999, 1000000, 2000000)
# Where a unit or a rounding changes, and one to each side.
EDGES = sorted({edge + by for edge in (
    1, 60, 120, 150, 299, 600, 3599, 3600, 5340, 5400, 7200, 9000, 10800, 86400, 127800, 129600,
    172800, 864000) for by in (-1, 0, 1)})
SEED = 11

# Shows each status by the page's own script, and returns what then stands on the page.
SHOW = """
    const [rows, done] = arguments, shown = [];
    const text = name => document.getElementById(name).textContent;
    (async () => {
        for (const [position, ahead, low, high] of rows) {
            const told = {state: 'waiting', position, ahead, poll_after: 0, message: null,
                eta: low < 0 ? null : {low, high}};
            window.fetch = async () => ({status: 200, ok: true, json: async () => told});
            document.dispatchEvent(new Event('visibilitychange'));
            await new Promise(resolve => setTimeout(resolve));
            shown.push([document.title, text('place'), text('ahead'), text('wait')]);
        }
        done(shown);
    })();"""


def rows():
    """Position, ahead, low and high; -1 is an unknown wait."""
    yield from ((place, place - 1, -1, -1) for place in PLACES)
    yield from ((2, 1, low, high) for high in EDGES
                for low in {0, high // 2, max(high - 1, 0), high})
    chance = random.Random(SEED)
    for _ in range(200):
        high = int(2 ** chance.uniform(0, 22))
        yield 2, 1, chance.randrange(high + 1), high


def written(language, told):
    """What page.c writes for each row."""
    lines = "".join(f"{language} {' '.join(map(str, row))}\n" for row in told)
    pages = subprocess.run([RENDER], input=lines, capture_output=True, text=True, check=True,
                           timeout=20).stdout.split("\0")[:-1]
    patterns = [re.compile(pattern) for pattern in (
        "<title>([^<]*)", '<b id="place">([^<]*)', '<dd id="ahead">([^<]*)',
        '<dd id="wait"[^>]*>([^<]*)')]
    return [[html.unescape(pattern.search(page).group(1)).strip() for pattern in patterns]
            for page in pages]


@pytest.mark.parametrize("language", [*LANGUAGES, "de", "fr"])  # each way to write numbers
def test_the_script_goes_on_in_the_words_of_the_page(make, tab, crowd, language):
    told = list(rows())
    sluice = make(rooms=[room(capacity=1)])
    crowd(sluice).enter()
    visitor = tab(language).open(sluice.url("/derby/"))
    # The first poll of the page's own is over and what it is told is due at once.
    visitor.js("window.fetch = async () => ({status: 200, ok: true, json: async () => "
               "({state: 'next', position: 1, ahead: 0, poll_after: 0})})")
    visitor.until_state("next")
    shown = visitor.driver.execute_async_script(SHOW, told)
    for row, ours, theirs in zip(told, shown, written(language, told), strict=True):
        assert ours == theirs, f"{row} (seed {SEED})"
