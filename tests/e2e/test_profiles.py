"""Goal: the profiles for TRex and wrk2 do to an appliance what they say, by its own counters."""
import re
import subprocess
import time

import astf
import pytest
from sluice import BINARY, ROOT, token

pytestmark = pytest.mark.sockets  # wrk and the player bring connections of the kernel's

PROFILES = ROOT / "bench/profiles"
ALL_WAIT = {"capacity": 1, "session": "1h"}
ONE_A_SECOND = {"rate": "60/min", "session": "1h"}
NO_LIMIT = {}


@pytest.fixture
def appliance(make):
    """appliance(room): whom it lets in at once is inside; what happened since is in delta()."""
    def start(keys=ALL_WAIT):
        one = make(rooms=[{"name": "derby", "path": "/derby", **keys}],
                   top={"connections": 2000, "connections_per_source": 2000})
        if keys:
            draw(one, 1)
        one.before = counters(one)
        return one
    return start


def counters(one):
    return {row["counter"]: row["value"] for row in one.show("counters")
            if row["part"] == "worker"}


def delta(one):
    now = counters(one)
    return {name: value - one.before[name] for name, value in now.items()}


def draw(one, tickets):
    run = subprocess.run([PROFILES / "draw", "--server", f"{one.host}:{one.port}",
                          "--tickets", str(tickets)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def wrk(one, script, *arguments, threads=1, connections=8, seconds=1):
    """How many requests were answered."""
    run = subprocess.run(
        ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--timeout", "60s",
         "-s", PROFILES / "wrk2" / script, one.url("/derby/"), *map(str, arguments)],
        capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and "Non-2xx" not in run.stdout, run.stdout + run.stderr
    assert not run.stderr, run.stderr
    assert not re.search("(connect|write|timeout) [1-9]", run.stdout), run.stdout
    return int(re.search(r"(\d+) requests in", run.stdout)[1])


@pytest.fixture
def profile(tmp_path):
    """profile(name, one, *tunables, tickets=cookies) is that of TRex, loaded."""
    def load(name, one, *tunables, tickets=None):
        more = []
        if tickets:
            file = tmp_path / "tickets.txt"
            file.write_text("\n".join(tickets) + "\n")
            more = ["--tickets", file]
        return astf.load(PROFILES / "trex" / f"{name}.py", "--server", one.address, "--port",
                         one.port, "--clients", "127.0.0.2-127.0.0.9", *more, *tunables)
    return load


def play(one, made, index=0, **keys):
    return astf.play(made.templates[index].client.program, (one.address, one.port), **keys)


def answers(got):
    return len(re.findall(rb"HTTP/1\.1 200", got))


@pytest.mark.parametrize("name", ["sockets", "dpdk"])
def test_check_accepts_the_examples(name):
    run = subprocess.run([BINARY, "check", "-c", PROFILES / f"{name}.yaml"],
                         capture_output=True, text=True, timeout=20)
    assert run.returncode == 0, run.stderr


def test_drawn_tickets_hold(appliance):
    one = appliance()
    cookies = draw(one, 20)
    assert len(set(cookies)) == 20
    for cookie in cookies:
        name, _, text = cookie.partition("=")
        assert name == "sluice-t-derby" and token(text)["kind"] == 1
    assert delta(one)["tickets"] == 20
    assert "waiting" in one.cli("ticket", cookies[0].partition("=")[2]).stdout


def test_a_room_without_a_line_gives_none(appliance):
    one = appliance(NO_LIMIT)
    run = subprocess.run([PROFILES / "draw", "--server", f"{one.host}:{one.port}",
                          "--tickets", "1"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "no tickets" in run.stderr


def test_wrk_arrivals_are_new_connections_that_draw(appliance):
    one = appliance()
    answered = wrk(one, "arrivals.lua")
    seen = delta(one)
    assert answered > 20
    assert answered <= seen["tickets"] <= answered + 8
    assert seen["connections"] >= seen["tickets"]


def test_wrk_arrivals_on_kept_connections(appliance):
    one = appliance()
    wrk(one, "arrivals.lua", "keep")
    seen = delta(one)
    assert seen["tickets"] > 20
    assert seen["connections"] < 20


def test_wrk_polls_have_their_macs_computed(appliance):
    one = appliance()
    wrk(one, "polls.lua", 20)
    seen = delta(one)
    assert 19 <= seen["tickets"] < 20 + 8
    assert seen["polls"] > 20
    assert seen["tokens"] > 0.99 * seen["polls"]
    assert seen["unknown"] == seen["bad_token"] == 0


def test_wrk_polls_with_a_ticket_for_each_connection_are_remembered(appliance):
    one = appliance()
    wrk(one, "polls.lua", 1, threads=2, connections=2)
    seen = delta(one)
    assert seen["tickets"] == 2
    assert seen["polls"] > 20
    assert seen["tokens_remembered"] >= seen["polls"] - 2


def test_wrk_herd_comes_at_once_and_polls_when_told(appliance):
    one = appliance(ONE_A_SECOND)
    wrk(one, "herd.lua", 50, threads=2, connections=100, seconds=6)
    seen = delta(one)
    assert seen["connections"] >= 100
    assert 90 <= seen["tickets"] <= 110
    assert 50 <= seen["polls"] <= 600  # every one to a few seconds
    assert seen["unknown"] == seen["bad_token"] == 0


def test_trex_arrivals_take_the_whole_page(appliance, profile):
    one = appliance()
    made = profile("arrivals", one)
    assert [t.client.limit for t in made.templates] == [None]
    got = play(one, made)
    assert answers(got) == 1 and b"Sluice-State: waiting" in got
    head, _, body = got.partition(b"\r\n\r\n")
    assert len(body) == int(re.search(rb"Content-Length: (\d+)", head)[1])
    assert delta(one)["tickets"] == 1


@pytest.mark.parametrize("lands_after", [0, 1])
def test_trex_polls_have_their_macs_computed(appliance, profile, lands_after):
    one = appliance()
    made = profile("polls", one, tickets=draw(one, 4))
    assert len(made.templates) == 2
    one.before = counters(one)
    play(one, made, turns=20, lands_after=lands_after)
    seen = delta(one)
    assert seen["polls"] == seen["tokens"] == 40
    assert seen["connections"] == 1
    assert seen["bad_token"] == 0


def test_trex_polls_with_one_ticket_are_remembered(appliance, profile):
    one = appliance()
    made = profile("polls", one, "--each", 1, tickets=draw(one, 1))
    one.before = counters(one)
    play(one, made, turns=20)
    seen = delta(one)
    assert seen["polls"] == 20 and seen["tokens_remembered"] == 19


@pytest.mark.parametrize("lands_after", [0, 1])
def test_trex_herd_gets_the_page_and_polls_in_time(appliance, profile, lands_after):
    one = appliance()
    made = profile("herd", one, "--interval", 2, tickets=draw(one, 1))
    one.before = counters(one)
    began = time.monotonic()
    got = play(one, made, turns=5, us_per_s=10_000_000, lands_after=lands_after)
    assert time.monotonic() - began > 6 * 0.2
    seen = delta(one)
    assert seen["tickets"] == 1  # the page's
    assert seen["polls"] == 5 and answers(got) == 6
    assert seen["connections"] == 1


def test_trex_connections_are_shared_among_the_tickets(appliance, profile):
    one = appliance()
    cookies = draw(one, 7)
    for connections, limits in ((3, [1, 1, 1]), (7, [1] * 7), (10, [2, 2, 2, 1, 1, 1, 1])):
        made = profile("herd", one, "--visitors", connections, tickets=cookies)
        assert [t.client.limit for t in made.templates] == limits
        assert sum(t.client.cps for t in made.templates) == pytest.approx(connections)
        assert all(t.client.ip_gen.dist_server.range == (one.address,) * 2
                   for t in made.templates)
    with pytest.raises(ValueError, match="only 7 tickets"):
        profile("polls", one, "--each", 8, tickets=cookies)
