"""Goal: a store that goes and comes back, of itself or by Sentinel, lets nobody in who was not to
come in, but where a room was told to; and then says so.

Two appliances of the sockets driver on loopback, with stores of their own for each story.
"""
import json
import pathlib
import shutil
import signal
import subprocess
import time

import httpx
import pytest
from sluice import JSON, Visitor, free_port, room, token, wait_for
from test_cluster import Cluster, Redis, Wanderer, is_inside

pytestmark = [pytest.mark.sockets, pytest.mark.xdist_group("cluster_store")]

KEYS = {"session": "60s", "burst": 1}
ROOMS = [
    room("hold", capacity=1, on_store_loss="hold", **KEYS),
    room("share", capacity=3, rate="4/s", on_store_loss="share", **KEYS),
    room("open", capacity=1, on_store_loss="open", **KEYS),
    room("reject", capacity=1, on_store_loss="reject", **KEYS),
]
NAMES = [r["name"] for r in ROOMS]


class Kept(Redis):
    """redis-server that forgets nothing, on a socket or a port."""

    def __init__(self, folder, name, port=0, *more):
        self.folder, self.process, self.port = folder, None, port
        self.socket = folder / f"{name}.socket"
        self.words = ["redis-server", "--port", str(port), "--unixsocket", str(self.socket),
                      "--dir", str(folder), "--appendonly", "yes", "--appendfsync", "always",
                      "--appenddirname", f"{name}.aof", *more]

    def start(self):
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.words],
                                        stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        wait_for(lambda: self.say("PING") == "PONG", 10)
        return self

    def destroy(self):
        if self.process and self.process.poll() is None:
            self.kill()


class Two(Cluster):
    """Two appliances; `store` as it is configured."""

    def __init__(self, rooms, store=None):
        super().__init__()
        self.rooms, self.store = rooms, store
        self.redis_kept = Kept(self.redis.folder, "kept")

    def make(self, name, rooms=None, key=None):
        sluice = super().make(name, rooms or self.rooms, key)
        sluice.config["store"] = self.store or f"unix://{self.redis_kept.socket}"
        return sluice

    def begin(self):
        self.at = {name: self.make(name).start(expect_ready=False) for name in ("a", "b")}
        for sluice in self.all():
            wait_for(sluice.is_ready, 30, otherwise=sluice.read_log)
        self.wait_whole()
        return self

    def destroy(self):
        self.redis_kept.destroy()
        super().destroy()


@pytest.fixture
def two():
    made = Two(ROOMS)
    try:
        made.redis_kept.start()
        yield made.begin()
    finally:
        made.destroy()


def fill(cluster, name):
    """Somebody inside, and somebody who waits."""
    inside, waits = Wanderer(cluster, name), Wanderer(cluster, name)
    wait_for(lambda: is_inside(inside.get()), 10, 0.2, otherwise=cluster.describe)
    return inside, waits


def place_of(cluster, one):
    """Once all say the same."""
    def alike():
        places = {one.status(sluice)["position"] for sluice in cluster.all()}
        return len(places) == 1 and places.pop()
    return wait_for(alike, 5, 0.05, otherwise=cluster.describe)


def sessions(people):
    return {token(one.passed)["key"] for one in people if one.passed}


def test_on_store_loss(two):
    """What is told and who is let in while the store is away, by each room's wish; and when it is
    back everybody has one session, and nobody is let in for whom there is no room."""
    inside = {}
    for name in NAMES:
        inside[name], _ = fill(two, name)
    waits = Wanderer(two, "hold")
    assert not is_inside(waits.get())
    place = place_of(two, waits)

    two.redis_kept.kill()
    for sluice in two.all():
        wait_for(lambda: sluice.show("cluster")["store"]["state"] == "away", 5, 0.1)
    began = time.monotonic()
    for name in NAMES:  # whoever is in stays in, everywhere
        assert all(is_inside(inside[name].get(sluice=s)) for s in two.all())

    # hold: places stay, newcomers get tickets.
    held = Wanderer(two, "hold")
    assert not is_inside(held.get()) and held.ticket
    assert waits.status()["position"] == place and waits.status()["state"] == "waiting"
    # open: everybody; on A and on B it is another session, until they have met.
    opened = [Wanderer(two, "open") for _ in range(4)]
    for one in opened:
        wait_for(lambda: is_inside(one.get()), 5, 0.1, otherwise=two.describe)
    # reject: no newcomer, and no ticket.
    turned = Wanderer(two, "reject")
    wait_for(lambda: "rejected" in turned.get(headers=JSON).text, 3, 0.1)
    # share: by half of the rate on each, beyond the capacity; who finds nobody's turn waits.
    shared = [Wanderer(two, "share", i % 2) for i in range(6)]
    for i, one in enumerate(shared):
        one.get(sluice=two.all()[i % 2])

    def come_in():
        for i, one in enumerate(shared):
            if not one.passed:
                one.status(two.all()[i % 2])
        return len(sessions(shared)) == len(shared)
    wait_for(come_in, 10, 0.1, otherwise=two.describe)
    assert len(sessions(shared)) <= 4 * (time.monotonic() - began) + 2
    # show says which rooms that are.
    for sluice in two.all():
        views = {v["room"]: v for v in sluice.show("cluster")["rooms"]}
        assert {name: views[name]["on_store_loss"] for name in NAMES} == {n: n for n in NAMES}
        assert all(views[name]["in_force"] for name in NAMES)
        assert {name for name in NAMES if views[name]["outside_bound"]} == {"share", "open"}

    two.redis_kept.start()
    two.wait_whole(15)
    was = {name: sessions(people) for name, people in (("open", opened), ("share", shared))}
    wait_for(lambda: all(s.show("cluster")["unsaid"] == 0 for s in two.all()), 5, 0.1)
    # What was granted is in the book, so that nobody else comes in: neither newcomers nor those
    # who waited, before there is room again.
    for name, count in (("open", 5), ("share", 1 + len(was["share"])), ("hold", 1)):
        wait_for(lambda: two.all()[0].show("room", name)["sessions"] == count, 5, 0.2,
                 otherwise=lambda: f"{name}: {two.all()[0].show('room', name)}")
    for name in ("open", "hold", "reject"):
        late = Wanderer(two, name)
        for _ in range(4):
            assert not is_inside(late.get())
            time.sleep(0.2)
    assert waits.status()["position"] == place and waits.status()["state"] == "waiting"
    # One session each, on either, also for who comes with the ticket alone.
    for name, people in (("open", opened), ("share", shared)):
        for one in people:
            if not one.passed:
                continue
            assert all(is_inside(one.get(sluice=s)) for s in two.all())
        assert sessions(people) == was[name]
    over = {v["room"]: v["over_admitted_max"] for v in two.all()[0].show("cluster")["rooms"]}
    assert over["hold"] == over["reject"] == 0 and over["open"] == 4
    # The held come in when there is room.
    inside["hold"].leave()
    wait_for(lambda: waits.status()["state"] == "admitted", 10, 0.3, otherwise=two.describe)


class Watched:
    """A primary, its replica, and a sentinel that makes the one the other."""

    def __init__(self, folder):
        first, second, self.port = free_port(), free_port(), free_port()
        self.first = Kept(folder, "first", first, "--repl-diskless-sync-delay", "0",
                          "--repl-ping-replica-period", "1")
        self.second = Kept(folder, "second", second, "--replicaof", "127.0.0.1", str(first))
        self.conf = pathlib.Path(folder, "sentinel.conf")
        self.conf.write_text(f"port {self.port}\nbind 127.0.0.1\ndir {folder}\n"
                             f"sentinel monitor club 127.0.0.1 {first} 1\n"
                             "sentinel down-after-milliseconds club 700\n"
                             "sentinel failover-timeout club 4000\n")
        self.sentinel = None

    def ask(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True,
                              text=True, timeout=5).stdout

    def start(self):
        self.first.start()
        self.second.start()
        wait_for(lambda: "master_link_status:up" in self.second.say("INFO", "replication"), 10)
        self.sentinel = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "redis-sentinel", str(self.conf)],
            stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        # Until it knows of the replica, it has none to promote.
        wait_for(lambda: str(self.second.port) in self.ask("SENTINEL", "REPLICAS", "club"), 15)
        return self

    def destroy(self):
        for process in (self.sentinel, self.first.process, self.second.process):
            if process and process.poll() is None:
                process.kill()
                process.wait(10)


@pytest.fixture
def watched():
    made = Two([room("few", capacity=2, **KEYS), room("line", capacity=1, **KEYS)])
    redis = Watched(made.redis.folder)
    made.store = f"sentinel://127.0.0.1:{redis.port}/club"
    try:
        redis.start()
        yield made.begin(), redis
    finally:
        redis.destroy()
        made.destroy()


def test_sentinel_promotes_one_that_has_missed_writes(watched):
    """The primary dies with a session and a ticket that its replica never heard of. Nobody is let
    in in its place; the ticket has its place; the primary that comes back is let be."""
    two, redis = watched
    inside, waits = fill(two, "line")
    assert not is_inside(waits.get())
    place = place_of(two, waits)
    first = Wanderer(two, "few")
    wait_for(lambda: is_inside(first.get()), 5, 0.2, otherwise=two.describe)
    epoch = two.all()[0].show("cluster")["epoch"]

    redis.second.signal(signal.SIGSTOP)
    try:
        lost = Wanderer(two, "few")
        wait_for(lambda: is_inside(lost.get()), 2, 0.05, otherwise=two.describe)
        behind = Wanderer(two, "line", 1)
        assert not is_inside(behind.get())
        assert place_of(two, behind) == place + 1
        redis.first.kill()
    finally:
        redis.second.signal(signal.SIGCONT)
    began = time.monotonic()
    wait_for(lambda: all(str(redis.second.port) in (s.show("cluster")["store"]["primary"] or "")
                         and s.show("cluster")["store"]["state"] == "there"
                         for s in two.all()), 20, 0.1, otherwise=two.describe)
    print(f"recovered {time.monotonic() - began:.1f} s after the primary's death")
    for sluice in two.all():
        view = sluice.show("cluster")
        assert view["epoch"] > epoch and view["over_admitted_max"] == 0
    late = Wanderer(two, "few")
    for sluice in two.all():
        assert is_inside(lost.get(sluice=sluice)) and is_inside(first.get(sluice=sluice))
        assert not is_inside(late.get(sluice=sluice))
        assert waits.status(sluice)["position"] == place
        assert behind.status(sluice)["position"] == place + 1
    assert two.all()[0].show("cluster")["over_admitted_max"] == 0
    redis.first.start()  # an old primary, until the sentinel has made it a replica
    time.sleep(0.5)
    assert is_inside(lost.get()) and is_inside(inside.get())
    assert late.status()["state"] != "admitted"
    lost.leave()
    wait_for(lambda: late.status()["state"] == "admitted", 10, 0.2, otherwise=two.describe)


def restart(two, redis):
    two.at["a"].kill()
    two.at["a"].start()
    two.wait_whole()
    redis.say("FLUSHALL")


def drain(two, redis):
    two.at["a"].cli("drain")
    two.at["a"].process.wait(10)
    two.at["a"].start()
    two.wait_whole()
    redis.say("FLUSHALL")


def lose_power(two, redis):
    for one in two.all():
        one.kill()
    redis.kill()
    shutil.rmtree(redis.folder / "kept.aof")
    redis.start()
    for one in reversed(two.all()):
        one.start(expect_ready=False)
        wait_for(one.is_ready, 30, otherwise=one.read_log)


@pytest.mark.parametrize("happens", [restart, drain, lose_power])
def test_what_nobody_remembers_counts_as_taken(happens):
    """Two are inside by an appliance whose process is no more when Redis loses everything. They
    stay, and nobody has their slots until their passes have run out."""
    two = Two([room("few", capacity=2, session="14s", burst=2)])
    try:
        two.redis_kept.start()
        two.begin()
        inside = [Wanderer(two, "few"), Wanderer(two, "few")]
        for one in inside:
            wait_for(lambda: is_inside(one.get(sluice=two.at["a"])), 5, 0.2,
                     otherwise=two.describe)
        ends = min(token(one.passed)["expires"] for one in inside)
        happens(two, two.redis_kept)
        late = Wanderer(two, "few")
        wait_for(lambda: all(not s.show("cluster")["recovering"] and
                             s.show("cluster")["rooms"][0]["lost"] == 2 for s in two.all()),
                 15, 0.2, otherwise=two.describe)
        while time.time() < ends - 1:
            assert not is_inside(late.get())
            time.sleep(0.2)
        if happens != lose_power:  # of that it is not known when; the note adds a minute
            wait_for(lambda: is_inside(late.get()), 40, 0.2, otherwise=two.describe)
            assert time.time() >= ends
        assert all(s.show("cluster")["over_admitted_max"] == 0 for s in two.all())
    finally:
        two.destroy()


def test_health_while_the_store_is_awaited():
    """A first start has nothing to go by: it says so at once, to balancers and to commands, and
    serves when the store is there."""
    two = Two(ROOMS)
    try:
        sluice = two.make("a").start(expect_ready=False)

        def health():
            try:
                return httpx.get(sluice.url("/.sluice/health"), timeout=1)
            except httpx.TransportError:
                return None
        said = wait_for(health, 10, 0.1, otherwise=sluice.read_log)
        assert said.status_code == 503 and said.headers["Retry-After"] == "2"
        assert said.json()["state"] == "starting" and said.json()["waiting_for"] == "store"
        began = time.monotonic()
        assert all(health().status_code == 503 for _ in range(50))
        assert time.monotonic() - began < 5
        assert httpx.post(sluice.url("/hold/"), content=b"x" * 100).status_code == 503
        told = sluice.cli("show", "cluster", check=False)
        assert told.returncode == 1 and "waits for the store" in told.stdout + told.stderr
        two.redis_kept.start()
        wait_for(sluice.is_ready, 10, otherwise=sluice.read_log)
        assert health().status_code == 200 and health().json()["state"] == "ok"
        assert sluice.show("cluster")["appliances"] == 1
    finally:
        two.at = {"a": sluice}
        two.destroy()


def log_of(sluice, *words):
    return [line for line in sluice.read_log().splitlines() if all(w in line for w in words)]


@pytest.mark.parametrize("damage, says", [
    (lambda say, key: say("HSET", key("n"), "level", "garbage"), ("n:", "level")),
    (lambda say, key: say("SET", key("e"), "x"), ("e:", "string")),
])
def test_damaged_keys(two, damage, says):
    """Somebody has written into the keys: which, and what to do, is said once, and Redis is not
    asked all the time. When that is done, all goes on, and nobody is let in for whom there is no
    room."""
    inside, waits = fill(two, "hold")
    assert not is_inside(waits.get())
    redis = two.redis_kept
    before = [s.show("cluster")["store"]["connected"] for s in two.all()]
    began = time.monotonic()
    line = f"{token(waits.ticket)['line']:08x}"

    def key(letter):
        return f"sluice:{{sluice}}:{letter}:{line}"
    damage(redis.say, key)
    for sluice in two.all():
        error = wait_for(lambda: (e := sluice.show("cluster")["store"]["error"]) and
                         "damaged" in e and e, 5, 0.1, otherwise=two.describe)
        assert key(says[0][0]) in error and says[1] in error, error
        assert "delete it and sluice:{sluice}:meta" in error, error
    time.sleep(3)
    spent = time.monotonic() - began
    for sluice, connected in zip(two.all(), before):
        view = sluice.show("cluster")["store"]
        assert 3 <= view["connected"] - connected <= 3 * spent + 8, view
        assert view["failures"] >= 3 and view["state"] == "away", view
        assert len(log_of(sluice, "damaged key")) == 1, sluice.read_log()
        assert len(log_of(sluice, "connected to")) <= 2, sluice.read_log()
    redis.say("DEL", key(says[0][0]), "sluice:{sluice}:meta")
    two.wait_whole(15)
    wait_for(lambda: not any(s.show("cluster")["recovering"] for s in two.all()), 10, 0.1)
    for sluice in two.all():
        wait_for(lambda: not sluice.show("cluster")["store"]["error"], 5, 0.1)
        assert len(log_of(sluice, "can be gone by again, after")) == 1, sluice.read_log()
        assert is_inside(inside.get(sluice=sluice))
        assert sluice.show("cluster")["store"]["error"] is None
    time.sleep(1)
    assert not is_inside(waits.get())
    assert all(s.show("cluster")["over_admitted_max"] == 0 for s in two.all())


def secrets_of(sluice):
    return json.loads(sluice.cli("secrets", "list", "--json").stdout)


def test_what_a_secret_waits_for(two):
    """Who is down is named while a secret waits for it; a revocation waits for the others alone,
    and is in force everywhere at once."""
    two.at["c"] = two.make("c").start(expect_ready=False)
    a, b, c = two.all()
    wait_for(c.is_ready, 30, otherwise=c.read_log)
    two.wait_whole()
    _, one = fill(two, "hold")
    assert not is_inside(one.get(sluice=a)) and one.ticket
    first = token(one.ticket)["secret"]
    c.kill()
    wait_for(lambda: a.show("cluster")["appliances"] == 2, 5)
    a.cli("secrets", "rotate")
    for sluice in (a, b):
        told = wait_for(lambda: [s for s in secrets_of(sluice) if s["state"] == "told"
                                 and s["known_by"] == 2], 3)[0]
        assert (told["of"], told["waits_for"]) == (3, "c")
    again = b.cli("secrets", "rotate", check=False)
    assert again.returncode != 0 and "waiting for c" in again.stdout + again.stderr, again
    b.cli("secrets", "revoke", str(first))
    began = time.monotonic()
    for sluice in (a, b):
        wait_for(lambda: [(s["state"], s["secret"] == first) for s in secrets_of(sluice)]
                 == [("current", False)], 3, 0.05, otherwise=two.describe)
    assert time.monotonic() - began < 1.5
    del two.at["c"]
    c.destroy()


COMMANDS = [("room", "hold", "pause"), ("room", "hold", "release", "1"), ("secrets", "rotate")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_done_when_the_store_has_it(two, command):
    """A command just when the store has stopped does not say that it is done; once it is back,
    all go by what was said. One that says so is in the store."""
    a, b = two.all()
    told = {"pause": lambda s: s.show("room", "hold")["state"] == "paused",
            "rotate": lambda s: len(secrets_of(s)) == 2}.get(command[-1])
    two.redis_kept.signal(signal.SIGSTOP)
    run = a.cli(*command, check=False)
    two.redis_kept.signal(signal.SIGCONT)
    assert run.returncode != 0 and "has not taken it within 2 s" in run.stderr + run.stdout, run
    two.wait_whole()
    if told:
        wait_for(lambda: told(a) and told(b), 5, otherwise=two.describe)
    a.cli("room", "open", "message", "is told")
    two.redis_kept.kill()
    two.redis_kept.start()
    two.wait_whole()
    wait_for(lambda: b.show("room", "open")["message"] == "is told", 5)


def test_most_decide_what_is_configured(two):
    """One whose configuration is another's than most have does not conduct, wherever the store
    has been: the others go on letting people in."""
    rooms = [dict(r, capacity=7) if r["name"] == "hold" else r for r in ROOMS]
    two.at["c"] = two.make("c").start(expect_ready=False)
    odd = two.make("odd", rooms=rooms).start(expect_ready=False)
    two.at["odd"] = odd
    try:
        for sluice in two.all():
            wait_for(sluice.is_ready, 30, otherwise=sluice.read_log)
        for _ in range(3):
            two.wait_whole(30)
            wait_for(lambda: all(s.show("cluster")["conductor"] in "abc"
                                 and not s.show("cluster")["recovering"]
                                 and s.show("cluster")["conflicts"] == ["hold"]
                                 for s in two.all()), 10, 0.1, otherwise=two.describe)
            one = Visitor(two.all()[2])
            assert is_inside(one.get("/hold/")), two.describe()
            assert one.client.post(two.all()[2].url("/.sluice/hold/leave")).status_code == 204
            wait_for(lambda: two.all()[0].show("room", "hold")["sessions"] == 0, 5)
            # The odd one is the first in an empty store.
            for sluice in two.all():
                sluice.process.send_signal(signal.SIGSTOP if sluice is not odd else 0)
            two.redis_kept.say("FLUSHALL")
            wait_for(lambda: odd.show("cluster")["conductor"] == "odd", 8, otherwise=two.describe)
            for sluice in two.all():
                sluice.process.send_signal(signal.SIGCONT)
    finally:
        odd.destroy()


def test_who_comes_first_does_not_queue(two):
    """An appliance that listens lets people in, after the first start of all and after others."""
    for end in (None, "stop", "kill"):
        for sluice in two.all() if end else []:
            getattr(sluice, end)()
        for sluice in two.all() if end else []:
            sluice.start(expect_ready=False)
        for sluice in two.all():
            wait_for(sluice.is_ready, 30, otherwise=sluice.read_log)
        one = Visitor(two.all()[0])
        assert is_inside(one.get("/hold/")), two.describe()
        assert one.client.post(two.all()[0].url("/.sluice/hold/leave")).status_code == 204
        time.sleep(0.5)
