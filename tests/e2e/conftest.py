"""Fixtures: an origin, appliances and visitors that end with their test."""
import sys

sys.dont_write_bytecode = True

import pytest
from authority import Authority
from secured import NAMES, Secured
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


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "root")


@pytest.fixture
def secured(make, authority):
    """secured(*pairs): an appliance whose first listener has these certificates, or one."""
    def start(*pairs, **keys):
        return Secured(make, pairs or [authority.pair(NAMES)], **keys)
    return start
