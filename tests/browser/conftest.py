"""Fixtures: one browser for all, a tab for each test; an origin and appliances as in tests/e2e."""
import os
import pathlib
import signal
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1] / "e2e")]

import network
import pytest
from browser import Browser, Tab
from crowd import Crowd
from sluice import serving, starting

LONG = os.environ.get("SLUICE_TESTS_LONG") == "1"


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes a minute; only with SLUICE_TESTS_LONG=1")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # fixtures end what they began
    network.enter()
    be_online()


def be_online():
    """Chromium takes itself for offline if nothing but loopback has an address."""
    network.command("ip", "link", "add", "world0", "type", "veth", "peer", "name", "world1")
    for name in ("world0", "world1"):
        network.command("ip", "link", "set", name, "up")
    network.command("ip", "address", "add", "10.76.0.1/24", "dev", "world0")


def pytest_collection_modifyitems(config, items):
    late = [item for item in items if item.get_closest_marker("long") and not LONG]
    items[:] = [item for item in items if item not in late]
    config.hook.pytest_deselected(items=late)


@pytest.fixture
def origin():
    yield from serving()


@pytest.fixture
def make(origin):
    yield from starting(origin)


@pytest.fixture
def crowd():
    """crowd(sluice) are the others, who come without a browser."""
    made = []

    def gather(sluice):
        made.append(Crowd(sluice))
        return made[-1]

    yield gather
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def browser():
    chromium = Browser()
    yield chromium
    chromium.quit()


@pytest.fixture
def host():
    """The only one that a browser may ask."""
    return "127.0.0.1"


@pytest.fixture
def tab(browser, make, host):
    """tab(language) is a fresh tab; the first of a test finds no cookies. Afterwards none of them
    may have asked anybody but its own site for anything, or complained: every test is also one of
    the Content-Security-Policy."""
    driver = browser.driver
    first = driver.current_window_handle
    opened = []

    def start(language="en"):
        opened.append(Tab(browser, language))
        if len(opened) == 1:
            opened[0].forget_cookies()
            opened[0].hosts()
            opened[0].complaints()
        return opened[-1]

    yield start
    hosts, complaints = set(), []
    for one in opened:
        one.focus()
        hosts |= one.hosts()
        complaints += one.complaints()
        driver.close()
    driver.switch_to.window(first)
    assert not complaints
    assert {asked.partition(":")[0] for asked in hosts} <= {host}
    assert len(hosts) <= 1, hosts
