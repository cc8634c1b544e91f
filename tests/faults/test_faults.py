"""Goal: a cluster under load, and one thing after the other that can go wrong with it: the shop
never sees more than its capacity, and nobody loses the place.

bench/run cluster with smaller crowds and shorter faults, each part a test. What must hold on any
machine is judged; how fast it was is told.
"""
import pathlib
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import suite_cluster as cluster

vars(cluster).update(cluster.QUICK)

PARTS = [(cluster.calm, cluster.as_propagated), (cluster.step,),
         *((fault,) for fault in cluster.FAULTS)]
NONE = ("admitted_over", "shown_admitted_over", "lost")
NONE_OF_STEP = ("places_double", "positions_worse", "arrivals_overtaken", "second_over",
                "minute_over")
TAKEOVER_S = 3


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch):
    """No file, no process; and with its last process each network is gone."""
    with tempfile.TemporaryDirectory(prefix="faults-") as path:
        monkeypatch.setattr(tempfile, "tempdir", path)
        yield
        assert not [str(entry) for entry in pathlib.Path(path).rglob("*")]
    assert not pathlib.Path("/proc/thread-self/children").read_text()


@pytest.mark.parametrize("parts", PARTS, ids=[parts[0].__name__ for parts in PARTS])
def test_nobody_loses_the_place(parts):
    part = parts[0].__name__
    figures = {}
    for figure in cluster.apart(*parts):
        figures.update(figure)
    print(f"faults: {part}:", ", ".join(f"{name.removeprefix(f'{part}_')} {value:.4g}"
                                        for name, value in figures.items()))
    wanted = NONE + (NONE_OF_STEP if parts[0] is cluster.step else ())
    assert {name: figures[f"{part}_{name}"] for name in wanted} == dict.fromkeys(wanted, 0)
    if parts[0] is cluster.kill_conductor:
        assert figures["takeover_s"] <= TAKEOVER_S
