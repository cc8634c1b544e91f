"""Goal: a real crowd goes through a real room to a real shop, also past kill -9."""
import contextlib
import json
import subprocess
import time
import urllib.request

import pytest
from sluice import ROOT, Sluice, free_port, room, wait_for

CAPACITY, RATE = 40, 40


@pytest.fixture
def shop():
    """The shop of the demo, which keeps a ledger of who is inside."""
    port = free_port()
    process = subprocess.Popen([ROOT / "build/config/demo/shop", "--port", str(port),
                                "--session", "10"], stdout=subprocess.DEVNULL)

    def is_up():
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/stats").read()

    wait_for(is_up, 10)
    yield port
    process.terminate()
    process.wait(10)


@pytest.fixture
def appliance(shop):
    # Sessions outlast the patience of a visitor, 30 s: a TCP of its own that was killed tells nobody
    # who has no more to send.
    rooms = [room(capacity=CAPACITY, rate=f"{RATE}/s", session="60s", claim="80s")]
    sluice = Sluice(shop, rooms=rooms, top={"connections": 4000, "connections_per_source": 4000})
    yield sluice.start()
    sluice.destroy()


def crowd(sluice, shop, *more):
    return subprocess.Popen(
        [ROOT / "build/bench/crowd", "--target", f"{sluice.host}:{sluice.port}",
         "--visitors", "600", "--shop", "0.5", "--shop-port", str(shop), "--rate", str(RATE),
         "--capacity", str(CAPACITY), "--seconds", "120", "--json", *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_everybody_shops_in_order(appliance, shop):
    run = crowd(appliance, shop, "--tabs", "0.1")
    out, error = run.communicate(timeout=150)
    got = json.loads(out)
    assert got["arrived"] == 600 and got["lost"] == 0, (got, error)
    assert got["inversions"] == 0
    assert got["tabs_other_session"] == 0
    assert got["shop_sessions_max"] <= CAPACITY
    assert appliance.show("room", "derby")["sessions_max_seen"] <= CAPACITY


def test_kill_9_in_the_middle_of_it(appliance, shop):
    run = crowd(appliance, shop)
    for _ in range(3):
        time.sleep(3)
        appliance.kill()
        appliance.start()
    out, error = run.communicate(timeout=150)
    got = json.loads(out)
    assert got["lost"] == 0, ({key: got[key] for key in got if "lost" in key}, error)
    assert got["shop_sessions_max"] <= CAPACITY
    assert got["bought"] + got["left"] + got["ran_out"] == 600


def test_wrk_gets_nothing_but_answers(appliance):
    run = subprocess.run(["wrk", "-t1", "-c32", "-d2s", appliance.url("/.sluice/health")],
                         capture_output=True, text=True, check=True)
    assert "Non-2xx" not in run.stdout and "Socket errors" not in run.stdout, run.stdout
