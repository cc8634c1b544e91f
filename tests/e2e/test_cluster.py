"""Goal: several appliances are one: one line, one capacity, one session for each ticket, whichever
of them a visitor meets, while appliances and their store come and go.

Three appliances of the sockets driver on loopback, and a real redis-server on a socket. Stories
share them, in the order of this file: what breaks something comes last.
"""
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import pytest
from sluice import JSON, Origin, Sluice, Visitor, room, token, wait_for

pytestmark = [pytest.mark.sockets, pytest.mark.xdist_group("cluster")]

NAMES = ("a1", "a2", "a3")
ROOMS = [
    room("line", capacity=1, session="10m"),
    room("same", capacity=1, session="60s"),
    room("ended", capacity=50, session="60s"),
    room("both", capacity=1, session="60s"),
    room("exact", capacity=5, session="2s"),
    room("told", capacity=5, session="60s"),
    room("next", capacity=1, session="2s"),
    room("hold", capacity=50, session="60s"),
    room("share", capacity=500, rate="30/s", session="60s", on_store_loss="share"),
    room("open", capacity=1, session="60s", on_store_loss="open"),
    room("reject", capacity=1, session="60s", on_store_loss="reject"),
]


class Redis:
    """redis-server on a socket, without persistence, in a folder of its own."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-redis-"))
        self.socket = self.folder / "redis.socket"
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "redis-server", "--port", "0", "--unixsocket",
             str(self.socket), "--dir", str(self.folder), "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        wait_for(lambda: self.say("PING") == "PONG", 10)
        return self

    def say(self, *words):
        run = subprocess.run(["redis-cli", "-s", str(self.socket), *words], capture_output=True,
                             text=True, timeout=10)
        return run.stdout.strip()

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait(10)

    def destroy(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Cluster:
    def __init__(self):
        self.origin = Origin()
        self.redis = Redis()
        self.key = self.redis.folder / "cluster.key"
        self.key.write_text("5a" * 32)
        self.key.chmod(0o600)
        self.codes = self.redis.folder / "codes.txt"
        self.codes.write_text("7GQX-4TRM\nK2M9-XW7P, 2\nWQ4T-8HJN\n")
        self.at = {}

    def make(self, name, rooms=None, key=None):
        coded = room("coded", mode="always", capacity=2,
                     lanes=[{"name": "fans", "codes": str(self.codes)}])
        return Sluice(self.origin.port, rooms=rooms or [*ROOMS, coded], top={
            "store": f"unix://{self.redis.socket}", "code_attempts": 100,
            "cluster": {"appliance": name, "key_file": str(key or self.key)},
        })

    def start(self):
        self.redis.start()
        self.at = {name: self.make(name) for name in NAMES}
        for sluice in self.at.values():
            sluice.start(expect_ready=False)
        for sluice in self.at.values():
            wait_for(sluice.is_ready, 30, otherwise=sluice.read_log)
        self.wait_whole()
        return self

    def wait_whole(self, seconds=20):
        """Every appliance sees all of them, and a conductor."""
        def is_whole():
            views = [sluice.show("cluster") for sluice in self.at.values()]
            return all(v["appliances"] == len(self.at) and v["conductor"]
                       and v["store"]["state"] == "there" for v in views)
        wait_for(is_whole, seconds, 0.1, otherwise=self.describe)

    def lose_all(self):
        """The store is killed and begins empty; returns when everything has been written back."""
        epoch = self.all()[0].show("cluster")["epoch"]
        self.redis.kill()
        os.unlink(self.redis.socket)
        self.redis.start()
        self.wait_whole(15)
        wait_for(lambda: all(s.show("cluster")["epoch"] > epoch
                             and not s.show("cluster")["recovering"] for s in self.all()),
                 10, 0.1, otherwise=self.describe)

    def describe(self):
        return "\n".join(f"--- {name}\n{sluice.read_log()}" for name, sluice in self.at.items())

    def all(self):
        return list(self.at.values())

    def destroy(self):
        for sluice in self.at.values():
            sluice.destroy()
        self.redis.destroy()
        self.origin.stop()


@pytest.fixture(scope="module")
def cluster():
    made = Cluster()
    try:
        yield made.start()
    finally:
        made.destroy()


class Wanderer:
    """A visitor with one jar of cookies, who asks another appliance each time."""

    def __init__(self, cluster, name, first=0):
        self.name = name
        self.visitor = Visitor(cluster.all()[0])
        self.ways = itertools.cycle(cluster.all()[first:] + cluster.all()[:first])

    def get(self, path=None, sluice=None, **keys):
        sluice = sluice or next(self.ways)
        return self.visitor.client.get(sluice.url(path or f"/{self.name}/"), **keys)

    def status(self, sluice=None):
        return self.get(f"/.sluice/{self.name}/status", sluice, headers=JSON).json()

    def leave(self, sluice=None):
        sluice = sluice or next(self.ways)
        return self.visitor.client.post(sluice.url(f"/.sluice/{self.name}/leave"))

    def code(self, code, sluice=None):
        sluice = sluice or next(self.ways)
        return self.visitor.client.post(sluice.url(f"/.sluice/{self.name}/code"),
                                        data={"code": code}, headers=JSON)

    @property
    def ticket(self):
        return self.visitor.ticket(self.name)

    @property
    def passed(self):
        return self.visitor.passed(self.name)


def is_inside(answer):
    return answer.status_code == 200 and answer.text.startswith("shop:")


def enter(cluster, name, sluice=None):
    """A visitor who is inside: at once, or (a reply took long on a busy machine) after a moment."""
    one = Wanderer(cluster, name)
    if not is_inside(one.get(sluice=sluice)):
        wait_for(lambda: one.status()["state"] == "admitted", 10, 0.3, otherwise=cluster.describe)
    return one


def current_of(sluice):
    secrets = json.loads(sluice.cli("secrets", "list", "--json").stdout)
    return [s["secret"] for s in secrets if s["state"] == "current"]


def test_one_line_over_all(cluster):
    """Visitors ask another appliance at each poll: places are unique, in order, and never worse."""
    enter(cluster, "line")
    people = [Wanderer(cluster, "line", i % 3) for i in range(12)]
    for one in people:
        assert not is_inside(one.get())
        assert one.ticket
        time.sleep(0.06)  # order is that of arrival, up to 50 ms
    seen = {}

    def look(one):
        for _ in range(6):
            place = one.status()["position"]
            if place is not None:
                assert seen.setdefault(id(one), place) == place
            time.sleep(0.1)
        return place

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        places = list(pool.map(look, people))
    assert places[0] in (1, 2)  # whoever entered may have had the first, for a moment
    assert places == list(range(places[0], places[0] + 12))
    assert [token(one.ticket)["key"] for one in people] == sorted(
        token(one.ticket)["key"] for one in people)
    for sluice in cluster.all():
        wait_for(lambda: sluice.show("room", "line")["waiting"] == 12, 3)  # a view is that old


def test_one_ticket_is_one_session(cluster):
    """Claimed on one appliance, it has the same session on another, with the pass or without."""
    a1, a2, a3 = cluster.all()
    inside, waits = enter(cluster, "same", a1), Wanderer(cluster, "same", 1)
    session = token(inside.passed)["key"]
    assert is_inside(inside.get(sluice=a2)) and is_inside(inside.get(sluice=a3))
    assert token(inside.passed)["key"] == session
    assert not is_inside(waits.get(sluice=a2))
    assert inside.leave(a3).status_code == 204
    wait_for(lambda: waits.status(a2)["state"] == "admitted", 10, 0.3)
    session = token(waits.passed)["key"]
    ends = token(waits.passed)["expires"]
    waits.visitor.client.cookies.delete("sluice-p-same")
    assert waits.status(a3)["state"] == "admitted"
    assert token(waits.passed)["key"] == session and token(waits.passed)["expires"] == ends


def test_what_ended_on_one_is_refused_on_all(cluster):
    a1, a2, a3 = cluster.all()
    one = enter(cluster, "ended", a1)
    assert is_inside(one.get(sluice=a2))
    cluster.origin.sluice_command = "end"
    one.get(sluice=a1)
    cluster.origin.sluice_command = None
    until = time.monotonic() + 1.0
    text = one.passed
    for sluice in (a2, a3):
        def is_refused():
            answer = Visitor(sluice).get("/ended/", headers={"Sluice-Pass": text})
            return f"shop:{token(text)['key']:016x}" not in answer.text
        wait_for(is_refused, max(0.1, until - time.monotonic()), 0.05)


def test_who_carries_two_visitors_tokens_gives_both_back(cluster):
    """A browser can hold the ticket of one visitor and the pass of another: it leaves with all that
    it holds, and 204 says that all of it is given back."""
    inside, waits = enter(cluster, "both"), Wanderer(cluster, "both")
    assert not is_inside(waits.get()) and waits.ticket
    ticket, passed = waits.ticket, inside.passed
    both = Wanderer(cluster, "both")
    both.visitor.client.cookies.set("sluice-t-both", ticket)
    both.visitor.client.cookies.set("sluice-p-both", passed)
    assert both.leave(cluster.all()[1]).status_code == 204
    for sluice in cluster.all():
        for one, name, token_of in ((waits, "t", ticket), (inside, "p", passed)):
            def is_gone():
                alone = Wanderer(cluster, "both")
                alone.visitor.client.cookies.set(f"sluice-{name}-both", token_of)
                return alone.get("/.sluice/both/status", sluice, headers=JSON).status_code == 410
            wait_for(is_gone, 3, 0.1, otherwise=cluster.describe)


def test_capacity_is_exact(cluster):
    """A crowd at all three: by the passes themselves never more than five are inside."""
    passes, stop = [], threading.Event()

    def come(i):
        while not stop.is_set():
            one = Wanderer(cluster, "exact", i % 3)
            if is_inside(one.get()):
                passes.append(token(one.passed))
            while one.ticket and not one.passed and not stop.is_set():
                time.sleep(0.15)
                with contextlib.suppress(KeyError):
                    one.status()
            if one.passed:
                passes.append(token(one.passed))
                stop.wait(1)

    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        work = [pool.submit(come, i) for i in range(24)]
        time.sleep(5)
        stop.set()
        for one in work:
            one.result()
    inside = {p["key"]: p for p in passes}.values()
    for second in range(min(p["issued"] for p in inside), max(p["expires"] for p in inside)):
        assert sum(p["issued"] <= second < p["expires"] for p in inside) <= 5
    assert len(inside) >= 8
    for sluice in cluster.all():
        view = sluice.show("cluster")
        assert view["over_admitted_max"] == 0 and view["conflicts"] == []


def test_commands_reach_all(cluster):
    a1, a2, a3 = cluster.all()
    a1.cli("room", "told", "pause")
    a2.cli("room", "told", "message", "back at noon")
    for sluice in cluster.all():
        wait_for(lambda: (sluice.show("room", "told")["state"],
                          sluice.show("room", "told")["message"]) == ("paused", "back at noon"), 3)
    one = Wanderer(cluster, "told")
    assert not is_inside(one.get(sluice=a3)) and one.status(a3)["message"] == "back at noon"
    a3.cli("room", "told", "resume")
    wait_for(lambda: one.status(a2)["state"] == "admitted", 8, 0.3)


def test_a_secret_signs_when_all_have_it(cluster):
    a1, a2, a3 = cluster.all()
    before = Wanderer(cluster, "line")
    before.get(sluice=a1)
    a2.cli("secrets", "rotate")
    old = token(before.ticket)["secret"]
    wait_for(lambda: {tuple(current_of(s)) for s in cluster.all()} != {(old,)}
             and len({tuple(current_of(s)) for s in cluster.all()}) == 1, 5)
    after = Wanderer(cluster, "line")
    after.get(sluice=a3)
    assert token(after.ticket)["secret"] != old
    for sluice in cluster.all():
        assert before.status(sluice)["position"] is not None
        assert after.status(sluice)["state"] == "waiting"


def test_who_may_not_join(cluster):
    """Another with a name that is in use, or another key, ends at once and says why; one with other
    limits joins, and admits nobody where they differ."""
    rooms = [dict(r, capacity=7) if r["name"] == "hold" else r for r in ROOMS]
    other_key = cluster.redis.folder / "other.key"
    other_key.write_text("77" * 32)
    other_key.chmod(0o600)
    named, keyed = cluster.make("a1"), cluster.make("a8", key=other_key)
    differs = cluster.make("a9", rooms=rooms)
    try:
        for sluice in (named, keyed, differs):
            sluice.start(expect_ready=False)
        wait_for(differs.is_ready, 20, otherwise=differs.read_log)
        wait_for(lambda: differs.show("cluster")["conflicts"] == ["hold"], 5)
        one = Visitor(differs)
        assert not is_inside(one.get("/hold/")) and one.ticket("hold")
        for sluice in [differs, *cluster.all()]:
            wait_for(lambda: sluice.show("cluster")["conflicting"] == [
                {"room": "hold", "otherwise": ["a9"], "here": sluice is differs}], 5)
            says = "configured otherwise " + ("here" if sluice is differs else "on a9")
            assert sluice.read_log().count("room hold: " + says) == 1, sluice.read_log()
        assert named.process.wait(15) == 1
        said = [line for line in named.read_log().splitlines() if " error" in line]
        assert len(said) == 1 and "is the name of another appliance, which is alive" in said[0]
        assert "waiting 5 s for its end" in named.read_log()
        assert keyed.process.wait(15) == 1 and "not the key of this cluster" in keyed.read_log()
        members = {m["appliance"]: m["state"] for m in cluster.all()[0].show("cluster")["members"]}
        assert members == {"a1": "live", "a2": "live", "a3": "live", "a8": "left", "a9": "live"}
        # It leaves cleanly.
        assert differs.stop() == 0
        wait_for(lambda: {m["appliance"]: m["state"] for m in
                          cluster.all()[0].show("cluster")["members"]}["a9"] == "left", 3)
    finally:
        for sluice in (named, keyed, differs):
            sluice.destroy()


def test_another_conducts(cluster):
    """kill -9 of the conductor: within 3 s there is another, and the line goes on."""
    name = cluster.all()[0].show("cluster")["conductor"]
    gone = cluster.at.pop(name)
    people = [Wanderer(cluster, "next") for _ in range(3)]
    for one in people:
        one.get()
    threshold = cluster.all()[0].show("room", "next")["threshold"]
    gone.kill()
    at = time.monotonic()
    wait_for(lambda: all(s.show("cluster")["conductor"] not in (name, None)
                         for s in cluster.all()), 5, 0.05, otherwise=cluster.describe)
    assert time.monotonic() - at < 3.0
    wait_for(lambda: people[-1].status()["state"] == "admitted" or any(
        one.status() and False for one in people[:-1]), 25, 0.3, otherwise=cluster.describe)
    assert cluster.all()[0].show("room", "next")["threshold"] >= threshold
    gone.start()
    cluster.at[name] = gone
    cluster.wait_whole()


def test_the_store_is_away(cluster):
    """Each room goes by its own wish; afterwards all is as it was."""
    inside = enter(cluster, "hold")
    for name in ("open", "reject"):
        enter(cluster, name)
    cluster.redis.signal(signal.SIGSTOP)
    try:
        for sluice in cluster.all():
            wait_for(lambda: sluice.show("cluster")["store"]["state"] == "away", 5, 0.1)
        for sluice in cluster.all():
            assert is_inside(inside.get(sluice=sluice))
        held = Wanderer(cluster, "hold")
        assert not is_inside(held.get()) and held.ticket
        assert is_inside(Wanderer(cluster, "open").get())
        wait_for(lambda: Wanderer(cluster, "reject").status()["state"] in ("rejected", "unknown")
                 and "rejected" in Wanderer(cluster, "reject").get(headers=JSON).text, 5, 0.1)
        views = {v["room"]: v for v in cluster.all()[0].show("cluster")["rooms"]}
        assert views["hold"]["in_force"] and views["hold"]["on_store_loss"] == "hold"
        assert cluster.all()[0].cli("room", "told", "pause", check=False).returncode == 1
    finally:
        cluster.redis.signal(signal.SIGCONT)
    cluster.wait_whole(8)
    wait_for(lambda: held.status()["state"] == "admitted", 12, 0.3, otherwise=cluster.describe)
    assert is_inside(inside.get())


def newcomer(cluster):
    """Somebody with a ticket of the room that has codes."""
    one = Wanderer(cluster, "coded")
    one.get()
    assert one.ticket
    return one


def test_a_code_is_used_up_on_all(cluster):
    first, second, third = (newcomer(cluster) for _ in range(3))
    a, b, c = cluster.all()
    lost = Wanderer(cluster, "coded")  # the same, as if the answer had not come
    lost.visitor.client.cookies = first.visitor.client.cookies
    assert first.code("7GQX-4TRM", a).status_code == 200
    assert lost.code("7GQX-4TRM", b).status_code == 200
    assert token(lost.ticket)["key"] == token(first.ticket)["key"]
    assert second.code("7GQX-4TRM", c).json()["reason"] == "code_spent"
    assert second.code("K2M9-XW7P", c).status_code == 200
    assert third.code("K2M9-XW7P", a).status_code == 200
    assert newcomer(cluster).code("K2M9-XW7P", b).json()["reason"] == "code_spent"
    assert len({token(one.ticket)["key"] for one in (first, second, third)}) == 3
    for sluice in cluster.all():  # what all have used, on each
        said = {code: json.loads(sluice.cli("lane", "code", "coded/fans", code, "--json").stdout)
                for code in ("7GQX-4TRM", "K2M9-XW7P", "WQ4T-8HJN")}
        assert [said[code]["used"] for code in said] == [1, 2, 0], said
        wait_for(lambda: (view := sluice.show("room", "coded/fans"))["codes_used"] == 2
                 and view["code_uses_made"] == 3, 4, otherwise=sluice.read_log)


def test_a_place_that_was_given_back_is_not_given_again(cluster):
    a, b, c = cluster.all()
    one = newcomer(cluster)
    cookies = dict(one.visitor.client.cookies)
    assert one.code("WQ4T-8HJN", a).status_code == 200
    wait_for(lambda: one.status(b)["position"] is not None, 5)
    assert one.leave(b).status_code == 204
    time.sleep(0.5)
    for sluice in (a, b, c):  # with what it had before, as if the answer had not come
        again = Wanderer(cluster, "coded")
        again.visitor.client.cookies.update(cookies)
        answer = again.code("WQ4T-8HJN", sluice)
        assert (answer.status_code, answer.json()["reason"]) == (403, "code_spent")


def test_the_store_has_lost_all(cluster):
    """kill -9 of a Redis without persistence: its members write back what they know, and nothing is
    granted twice."""
    Wanderer(cluster, "line").get()  # the one slot, should it be free again
    inside, waits = enter(cluster, "hold"), Wanderer(cluster, "line")
    waits.get()
    place = wait_for(lambda: waits.status()["position"], 3)
    time.sleep(1.5)  # what `show` says of a room is a second old at most
    taken = cluster.all()[0].show("room", "hold")["sessions"]
    cluster.lose_all()
    wait_for(lambda: cluster.all()[1].show("room", "hold")["sessions"] == taken, 6, 0.2)
    for sluice in cluster.all():
        assert is_inside(inside.get(sluice=sluice))
        assert waits.status(sluice)["position"] == place
        assert {tuple(current_of(s)) for s in cluster.all()} == {tuple(current_of(sluice))}
    for code in ("7GQX-4TRM", "K2M9-XW7P"):
        assert newcomer(cluster).code(code).json()["reason"] == "code_spent"


def test_codes_of_a_store_that_is_emptied(cluster):
    """Again and again, at any moment of a conductor's: codes are answered, and what was used is."""
    for i in range(4):
        time.sleep(0.17 * i)
        epoch = cluster.all()[0].show("cluster")["epoch"]
        cluster.redis.say("FLUSHALL")
        wait_for(lambda: all(s.show("cluster")["epoch"] > epoch
                             and not s.show("cluster")["recovering"] for s in cluster.all()),
                 15, 0.05, otherwise=cluster.describe)
        for code in ("7GQX-4TRM", "K2M9-XW7P"):
            answer = wait_for(lambda: (a := newcomer(cluster).code(code)).status_code != 503 and a,
                              5, 0.2, otherwise=cluster.describe)
            assert answer.json()["reason"] == "code_spent"


def test_a_start_while_the_store_is_away(cluster):
    """It knows its number and the secrets: it serves tickets, and admits nobody."""
    name, sluice = "a2", cluster.at["a2"]
    waits = Wanderer(cluster, "line")
    waits.get(sluice=sluice)
    wait_for(lambda: waits.status(sluice)["position"], 3)
    cluster.redis.kill()
    sluice.kill()
    sluice.start()
    assert waits.status(sluice)["state"] == "waiting"
    fresh = Visitor(sluice)
    assert not is_inside(fresh.get("/ended/")) and fresh.ticket("ended")
    assert sluice.show("cluster")["store"]["state"] == "away"
