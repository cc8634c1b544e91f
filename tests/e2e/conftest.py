"""Fixtures: an origin, appliances and visitors that end with their test."""
import sys

sys.dont_write_bytecode = True

import pytest
from sluice import Visitor, serving, starting


@pytest.fixture
def origin():
    yield from serving()


@pytest.fixture
def make(origin):
    yield from starting(origin)


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
