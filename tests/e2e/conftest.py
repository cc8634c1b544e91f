"""Fixtures: an origin, appliances and visitors that end with their test.

Markers say where a test belongs: `sockets` to that driver alone, `bypass` to `driver: dpdk` alone,
`smoke` to the few that run over every device, `above` to what no driver can know of, `once` to the
run over plain IPv4, `long` to `tests/run --long`. What is left out of a run is named at its end.
"""
import collections
import fcntl
import os
import signal
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
    "above": "of what no driver knows of: over devices only by --long, but for its smoke part",
    "long": "takes minutes; only with SLUICE_TESTS_LONG=1",
    "once": "makes a path of its own, of both families and no tag",
    "alone": "goes by the clock: no other test runs beside it",
}
left_out = collections.Counter()  # (reason, file)


def pytest_configure(config):
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # fixtures end what they began
    network.enter()


def is_long():
    return os.environ.get("SLUICE_TESTS_LONG") == "1"


def is_above(item):
    return item.get_closest_marker("above") and not item.get_closest_marker("smoke")


def why_left_out(item):
    bypass = item.get_closest_marker("bypass")
    if item.get_closest_marker("long") and not is_long():
        return MARKERS["long"]
    if bypass and not network.is_bypass():
        return "of `driver: dpdk`"
    if bypass and bypass.args and network.DEVICE not in bypass.args:
        return f"of {' and '.join(bypass.args)}"
    if item.get_closest_marker("once") and (network.FAMILY, network.VLAN) != ("4", 0):
        return MARKERS["once"]
    if network.is_bypass() and item.get_closest_marker("sockets"):
        return MARKERS["sockets"]
    if is_above(item) and network.is_bypass() and not is_long():
        return MARKERS["above"]
    return None


def pytest_collection_modifyitems(config, items):
    """Those that run alone come last: until then nobody waits for anybody."""
    reasons = [(why_left_out(item), item) for item in items]
    left_out.update((why, item.path.name) for why, item in reasons if why)
    config.hook.pytest_deselected(items=[item for why, item in reasons if why])
    items[:] = sorted((item for why, item in reasons if not why),
                      key=lambda item: bool(item.get_closest_marker("alone")))
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = [[*key, count] for key, count in left_out.items()]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Of the processes of pytest-xdist each leaves out the same."""
    left_out.update({(why, file): count for why, file, count in node.workeroutput["left_out"]}
                    if not left_out and hasattr(node, "workeroutput") else {})


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"over {network.describe()}; {left_out.total()} left out")
    for reason in sorted({why for why, _ in left_out}):
        files = [f"{count} in {file}" for (why, file), count in left_out.items() if why == reason]
        terminalreporter.write_line(f"  {reason}: {', '.join(files)}")


@pytest.fixture(autouse=True)
def turn(request):
    """Tests run beside each other, in as many processes as there are, but for those marked."""
    with open(__file__, "rb") as file:
        is_alone = request.node.get_closest_marker("alone")
        fcntl.flock(file, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        yield


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
