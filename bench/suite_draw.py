"""draw: 500,000 gathered in front of closed doors, the opening, and the first minute after it.

In one process and virtual time, by the product's own gate, controller and draws (bench/draw.c);
the real path, over sockets, is tests/e2e/test_draw.py. What must hold: all are placed within a
second of the closing of the list, evenly, nobody twice; no second of the minute has twice the polls
of the mean; and no turn of a worker takes longer than it may.
"""
import json
import subprocess

from world import BUILD, Failure, ending_with_us, folder

TAKES = "takes about twenty seconds"
GATHERED = 500000
LIMIT_S = 300
QUICK = {"GATHERED": 5000}


def run():
    with folder() as at:
        command = [BUILD / "bench/draw", GATHERED, at]
        run = subprocess.run(ending_with_us(command), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                             timeout=LIMIT_S)
    if run.returncode != 0:
        raise Failure("nobody was drawn, or somebody twice")
    yield json.loads(run.stdout)
