"""Fixtures: an origin, appliances and visitors that end with their test.

Markers say where a test belongs: `sockets` to that driver alone, `bypass` to `driver: dpdk` alone,
`smoke` to the few that run over every device, `long` to `tests/run --long`. What is left out of a
run is named at its end.
"""
import os
import sys

sys.dont_write_bytecode = True

import network
import pytest
from authority import Authority
from secured import NAMES, Secured
from sluice import Visitor, serving, starting

MARKERS = {
    "sockets": "of the sockets driver itself",
    "bypass": "of `driver: dpdk` itself, over these devices if it names some",
    "smoke": "runs over every device",
    "long": "takes minutes; only with SLUICE_TESTS_LONG=1",
}
left_out = []


def pytest_configure(config):
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    if network.is_bypass():
        network.enter()


def is_left_out(item):
    if item.get_closest_marker("long") and os.environ.get("SLUICE_TESTS_LONG") != "1":
        return True
    if not network.is_bypass():
        return bool(item.get_closest_marker("bypass"))
    bypass = item.get_closest_marker("bypass")
    return bool(item.get_closest_marker("sockets")
                or (bypass and bypass.args and network.DEVICE not in bypass.args))


def pytest_collection_modifyitems(config, items):
    left_out.extend(item for item in items if is_left_out(item))
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"over {network.describe()}; {len(left_out)} left out:")
    for item in left_out:
        terminalreporter.write_line(f"  {item.nodeid}")


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
