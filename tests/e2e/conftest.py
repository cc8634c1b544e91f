"""Fixtures: an origin, appliances and visitors that end with their test."""
import sys

sys.dont_write_bytecode = True

import pytest
from sluice import Origin, Sluice, Visitor


@pytest.fixture
def origin():
    server = Origin()
    yield server
    server.stop()


@pytest.fixture
def make(origin):
    """make(rooms=…, top=…, site=…) starts an appliance in front of `origin`."""
    made = []

    def start(**keys):
        ready, is_started = keys.pop("expect_ready", True), keys.pop("start", True)
        sluice = Sluice(origin.port, **keys)
        made.append(sluice)
        return sluice.start(expect_ready=ready) if is_started else sluice

    yield start
    for sluice in made:
        sluice.destroy()


@pytest.fixture
def visitor():
    """visitor(sluice) is a fresh browser."""
    made = []

    def enter(sluice, **keys):
        made.append(Visitor(sluice, **keys))
        return made[-1]

    yield enter
    for one in made:
        one.close()
