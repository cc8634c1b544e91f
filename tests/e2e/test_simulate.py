"""Goal: a plan is played by the real binary, says the same for the same seed, and what is wrong."""
import json
import pathlib
import subprocess
import xml.etree.ElementTree

import pytest
from sluice import BINARY

pytestmark = pytest.mark.sockets  # nothing of it knows of drivers

PLAN = """title: A small final
seed: 5
rooms:
  - name: final
    rate: 600/min
    opens: 1m
    prequeue: 1m
    no_show: 10
    arrivals: [{people: 2000, over: 2m, shape: ramp}]
"""


@pytest.fixture
def simulate(tmp_path):
    def run(plan, *options):
        path = tmp_path / "plan.yaml"
        path.write_text(plan)
        return subprocess.run([BINARY, "simulate", path, *options], cwd=tmp_path,
                              capture_output=True, text=True, timeout=60)
    return run


def test_table(simulate):
    run = simulate(PLAN)
    assert run.returncode == 0 and run.stderr == ""
    assert run.stdout.startswith("A small final\nseed 5;")
    assert "Appliances needed: 1" in run.stdout and "2,000" in run.stdout


def test_json_is_the_same_for_the_same_seed(simulate):
    once, twice, other = (simulate(PLAN, "--json", "--seed", seed) for seed in "778")
    assert once.stdout == twice.stdout != other.stdout
    result = json.loads(once.stdout)
    final, = result["rooms"]
    assert result["seed"] == 7 and not result["cut"]
    assert final["people"] == 2000 == final["admitted"] + final["no_shows"]
    assert final["wait_s"]["p50"] < final["wait_s"]["p99"] <= final["wait_s"]["max"]
    # The last of 1,800 at ten a second.
    assert abs(final["last_admitted_s"] - 60 - final["admitted"] / 10) < 15
    assert sum(row["came"] for row in result["rows"]) == 2000


def test_svg(simulate, tmp_path):
    assert simulate(PLAN, "--svg", "plot.svg").returncode == 0
    plot = xml.etree.ElementTree.parse(tmp_path / "plot.svg").getroot()
    assert plot.tag == "{http://www.w3.org/2000/svg}svg"
    assert "A small final" in "".join(plot.itertext())
    run = simulate(PLAN, "--svg", "nowhere/plot.svg")
    assert run.returncode == 1 and "nowhere/plot.svg: No such file" in run.stderr


def test_mistakes(simulate, tmp_path):
    run = simulate(PLAN.replace("600/min", "fast").replace("1m\n    no", "2m\n    no"))
    lines = run.stderr.splitlines()
    assert run.returncode == 1 and run.stdout == ""
    assert [line.split(" ")[0] for line in lines] == [
        f"{tmp_path}/plan.yaml:5:11:", f"{tmp_path}/plan.yaml:7:15:"]
    for seed in ("0", "x", "4294967296"):
        run = simulate(PLAN, "--seed", seed)
        assert run.returncode == 1 and "--seed" in run.stderr
    assert simulate(PLAN, "more").returncode == 2


def test_the_example_is_good():
    """With a hundredth of its people."""
    example = pathlib.Path(__file__).parents[2] / "config/examples/plans/onsale.yaml"
    text = example.read_text().replace("1200000", "12000").replace("800000", "8000")
    run = subprocess.run([BINARY, "simulate", "/dev/stdin", "--json"], input=text, text=True,
                         capture_output=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["rooms"][0]["people"] == 20000
