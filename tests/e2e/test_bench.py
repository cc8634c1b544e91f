"""Goal: the benchmarks go through, and whatever ends them, nothing that they started stays."""
import contextlib
import importlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import types

import pytest
from sluice import ROOT, wait_for

pytestmark = pytest.mark.sockets  # they choose their drivers themselves
ALONE = pytest.mark.alone  # what it measures goes before all else on both cores

FIGURES = {
    "crowd.inversions", "crowd.rate_error", "crowd.sessions_max",
    "peers.cpu_ratio_64", "peers.cpu_ratio_512", "peers.rate_ratio_64", "peers.rate_ratio_512",
    "peers.rss_growth_kb",
    "polls.bytes_per_idle_connection", "polls.cpu_ratio_nginx", "polls.cycles_arrival",
    "polls.cycles_connection", "polls.cycles_mac", "polls.cycles_remembered", "polls.cycles_syn",
    "draw.longest_turn_cycles", "draw.peak_over_mean", "draw.placed_s",
    "tls.cpu_ratio_handshake", "tls.cpu_ratio_handshake_dpdk",
}
POLLS = {"shop", "sluice", "packets", "nginx"}  # what is at work once nginx has its turn


@pytest.fixture
def folder():
    """With a short name: there are sockets below."""
    with tempfile.TemporaryDirectory(prefix="bench-") as path:
        yield pathlib.Path(path)


@pytest.fixture
def bench(folder):
    """bench(*arguments) is bench/run under way, with its folders in `folder`."""
    started = []

    def start(*arguments):
        started.append(subprocess.Popen(
            [ROOT / "bench/run", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(folder)}))
        return started[-1]

    yield start
    for run in started:
        run.kill()
        run.communicate()


def name_of(pid):
    """None if it has ended, whether or not somebody has asked for its status."""
    with contextlib.suppress(OSError):
        _, name, rest = re.split("[()]", pathlib.Path(f"/proc/{pid}/stat").read_text(), maxsplit=2)
        return None if rest.split()[0] in "ZX" else name
    return None


def descendants(pid):
    """Process id to name, of all that descend from it."""
    found = {}
    with contextlib.suppress(OSError):
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found[child] = name_of(child)
            found.update(descendants(child))
    return found


def at_work(run, names):
    """Its descendants, once all of these are among them."""
    def now():
        found = descendants(run.pid)
        if names <= set(found.values()):
            return found
        assert run.poll() is None, run.stderr.read()
        return None
    return wait_for(now, 120)


def stay(found):
    return {pid: name for pid, name in found.items() if name and name_of(pid) == name}


@pytest.fixture
def suites(monkeypatch, tmp_path):
    """The module, its report in tmp_path, its signals left alone."""
    monkeypatch.syspath_prepend(ROOT / "bench")
    module = importlib.import_module("suites")
    monkeypatch.setattr(module, "REPORT", tmp_path / "report.json")
    monkeypatch.setattr(module, "end_on", lambda *_: None)
    return module


def suite(*parts, fails=None, **constants):
    """A module that yields these and then fails, or not."""
    module = types.SimpleNamespace(TAKES="takes no time", **constants)

    def run():
        yield from ({key: getattr(module, "SIZE", value) for key, value in part.items()}
                    for part in parts)
        if fails:
            raise fails

    module.run = run
    return module


def test_what_was_taken_stays_when_a_suite_fails(suites, monkeypatch, capsys):
    from world import Failure, those_taken
    monkeypatch.setattr(suites, "SUITES", {
        "failing": suite({"a": 1}, fails=Failure("no b")),
        "wrong": suite({"c": 2}, fails=KeyError("our mistake")),
        "good": suite({"d": 3}, {"e": 4}),
        "mixed": types.SimpleNamespace(TAKES="", run=lambda: those_taken(
            suite({"f": 5}, fails=Failure("no g")).run(), suite({"h": 6}).run())),
    })
    suites.REPORT.write_text('{"failing.b": 7, "good.d": 8}')
    monkeypatch.setattr(sys, "argv", ["suites.py", "all", "--json"])
    assert suites.main() == 1
    taken = {"failing.a": 1, "wrong.c": 2, "good.d": 3, "good.e": 4, "mixed.f": 5, "mixed.h": 6}
    out, error = capsys.readouterr()
    assert json.loads(out) == taken
    assert "failing: no b" in error and "our mistake" in error and "mixed: no g" in error
    assert json.loads(suites.REPORT.read_text()) == {"failing.b": 7, **taken}


def test_quick_is_small_and_keeps_nothing(suites, monkeypatch, capsys):
    monkeypatch.setattr(suites, "SUITES", {
        "good": suite({"a": 1}, SIZE=1000, QUICK={"SIZE": 2})})
    monkeypatch.setattr(sys, "argv", ["suites.py", "good", "--quick"])
    assert suites.main() == 0
    assert capsys.readouterr().out.split() == ["good.a", "2"]
    assert not suites.REPORT.exists()


@pytest.mark.parametrize("arguments, status", [
    ([], 2), (["poll"], 2), (["polls", "--jso"], 2),
    (["--help"], 0)])
def test_usage(arguments, status):
    run = subprocess.run([ROOT / "bench/run", *arguments], capture_output=True, text=True,
                         timeout=20)
    assert run.returncode == status
    assert status != 0 or "--quick" in run.stdout


@ALONE
def test_kill_9_leaves_no_process(bench):
    run = bench("polls", "--quick")
    found = at_work(run, POLLS)
    run.kill()
    run.wait()
    wait_for(lambda: not stay(found), 1, otherwise=lambda: stay(found))


@ALONE
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_nothing(bench, folder, number):
    run = bench("peers", "--quick")
    found = at_work(run, {"shop", "sluice"})
    run.send_signal(number)
    assert run.wait(30) == 1
    assert not stay(found)
    assert not list(folder.iterdir())


@ALONE
def test_kill_9_while_it_builds(bench):
    run = bench("peers", "--quick")
    found = at_work(run, {"ninja"})
    run.kill()
    run.wait()
    wait_for(lambda: not stay(found), 5, otherwise=lambda: stay(found))


@pytest.mark.long
@ALONE
def test_every_figure_of_the_contract_is_taken(bench):
    run = bench("all", "--quick", "--json")
    out, error = run.communicate(timeout=900)
    assert run.returncode == 0, error
    figures = json.loads(out)
    assert FIGURES <= set(figures), error
    assert all(isinstance(value, (int, float)) for value in figures.values())
