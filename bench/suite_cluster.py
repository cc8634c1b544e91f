"""cluster: four appliances with one line, and everything that can go wrong with them.

A crowd that never ends and that roams over the appliances, while nothing goes wrong. A step: people
arrive at all appliances at once, and each gets a place that is nobody else's. And one fault after
the other, under that crowd. Each has a rack of its own, since it leaves tickets behind that nobody
comes with.
What must hold in all of it: the shop never sees more than the capacity, and nobody loses the place.
"""
import contextlib
import json
import signal
import subprocess
import threading
import time

from rack import HUB, PORT, PRIMARY_PORT, REPLICA_PORT, ROOM, SHOP_PORT, SITE, rack, until
from world import BUILD, Failure, ending_with_us, folder, those_taken

TAKES = "takes about seven minutes"
APPLIANCES = 4
STEP_VISITORS = 50000
STEP_OVER_S = 10
STEP_PROCESSES = 4  # a process may have some 20,000 descriptors, here and there
CONNECTIONS = 18000  # to each appliance, at once; likewise
STEP_S = 70
CROWD = 1500
CAPACITY = 200
RATE = 120  # people a second
SESSION_S = 15  # longer than the worst reply takes that must come through to a visitor
SHOP_SESSION_S = SESSION_S - 1  # it hears of a session after it has begun
FORMING_S = 4  # until there is a line
CALM_S = 20
BEFORE_S = 6  # of steady state, to compare with
AFTER_S = 12  # for recovery
STOPPED_S = 20
CUT_OFF_S = 60
LOSSY_S = 30
LOSS_PERCENT = 30
RESTART_S = 2
TAKEOVER_MOST_S = 10
QUICK = {"STEP_VISITORS": 2000, "STEP_OVER_S": 2, "STEP_S": 12, "CROWD": 400, "CALM_S": 5,
         "BEFORE_S": 4, "AFTER_S": 8, "STOPPED_S": 5, "CUT_OFF_S": 8, "LOSSY_S": 6}


def run():
    figures = {}
    faults = (apart(fault) for fault in FAULTS)
    for figure in those_taken(apart(calm, as_propagated), apart(step), *faults):
        figures.update(figure)
        yield figure
    yield {"admitted_over": max(all_of(figures, "admitted_over")),
           "lost": sum(all_of(figures, "lost"))}


def apart(*parts):
    """The figures of these, one after the other, of a rack of their own; last, its own count."""
    room = {"capacity": CAPACITY, "rate": f"{RATE}/s", "session": f"{SESSION_S}s"}
    with folder() as at, rack(at, APPLIANCES, room, CONNECTIONS, SHOP_SESSION_S) as world:
        for part in parts:
            yield from part(world) if part not in FAULTS else endure(world, part)
        yield {f"{parts[0].__name__}_shown_admitted_over": shown_over(world)}


def all_of(figures, name):
    return [value for key, value in figures.items() if key.endswith(f"_{name}")]


# --- what is seen

class Samples:
    """What sampler.py sees of the shop while this block runs."""

    def __init__(self, world):
        self.world, self.rows = world, []

    def __enter__(self):
        command = self.world.hub.inside("/usr/bin/python3", "-B",
                                        str(BUILD.parent / "bench/sampler.py"), SHOP_PORT)
        self.child = subprocess.Popen(ending_with_us(command), stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.take)
        self.thread.start()
        return self

    def take(self):
        for line in self.child.stdout:
            self.rows.append([float(word) for word in line.split()])

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait()
        self.thread.join()

    def rate(self, begin, end):
        """People a second who came in."""
        rows = [row for row in self.rows if begin <= row[0] <= end]
        if len(rows) < 2:
            raise Failure("the shop could not be looked at")
        return (rows[-1][1] - rows[0][1]) / (rows[-1][0] - rows[0][0])

    def again_at(self, rate, since):
        """When as many as that came in within a second for the first time; None: not once."""
        for row in self.rows:
            if row[0] >= since + 1 and self.rate(row[0] - 1, row[0]) >= rate:
                return row[0]
        return None


@contextlib.contextmanager
def crowd(world, *options):
    """The crowd as it runs; what it saw is in `seen` when it has been ended."""
    targets = [word for one in world.appliances for word in ("--target", f"{one.address}:{PORT}")]
    command = world.hub.inside(
        BUILD / "bench/crowd", *targets, "--host", SITE, "--path", f"/{ROOM}/", "--room", ROOM,
        "--shop-port", SHOP_PORT, "--shop", 1, "--leave", "mixed", "--rate", RATE,
        "--capacity", CAPACITY, "--json", *options)
    seen = {}
    child = subprocess.Popen(ending_with_us(command), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True)
    try:
        yield child, seen
        child.terminate()
        out, _ = child.communicate(timeout=60)
        if child.returncode != 0:
            raise Failure("the crowd failed")
        seen.update(json.loads(out))
    finally:
        child.kill()
        child.wait()


def held_over(seen):
    """Sessions above the capacity, as the crowd held them for certain."""
    return max(0, seen["held_max"] - CAPACITY)


def shop_over(seen):
    """As the shop counted: too many, if the crowd was late to come in or to leave."""
    if "shop_sessions_max" not in seen:
        raise Failure("the shop did not say how many it had")
    return max(0, seen["shop_sessions_max"] - CAPACITY)


# --- nothing goes wrong

def calm(world):
    with crowd(world, "--visitors", CROWD, "--over", 2, "--forever") as (_, seen):
        time.sleep(FORMING_S + CALM_S)
    yield {"calm_admitted_over": max(held_over(seen), shop_over(seen)),
           "calm_lost": seen["lost"],
           "calm_rate": seen["rate"]}


# --- the step

def step(world):
    with crowd(world, "--visitors", STEP_VISITORS, "--shape", "step", "--over", STEP_OVER_S,
               "--seconds", STEP_S, "--processes", STEP_PROCESSES) as (child, seen):
        child.wait(STEP_S + 60)
    if seen["places_told"] == 0:
        raise Failure(f"nobody was told a position: {seen}")
    yield {"step_admitted_over": held_over(seen),
           "step_shop_over": shop_over(seen),
           "step_places": seen["places_told"],
           "step_places_double": seen["places_double"],
           "step_positions_worse": seen["positions_worse"],
           "step_arrivals_overtaken": seen["arrivals_overtaken"],
           "step_inversions": seen["inversions"],
           "step_lost": seen["lost"],
           "step_second_over": max(0, seen["second_max"] - 2 * RATE),  # the burst is a second's
           "step_minute_over": max(0, seen["window_max"] - 61 * RATE)}


# --- faults: each begins when called, and says when it began and was over

def ordinary(world):
    """Any but the conductor."""
    conductor = world.conductor()
    return next(one for one in world.appliances if one is not conductor)


def kill_member(world):
    victim = ordinary(world)
    began = time.monotonic()
    victim.kill()
    time.sleep(RESTART_S)
    victim.start()
    victim.await_ready()
    return {}, began, began


def kill_conductor(world):
    victim = world.conductor()
    if not victim:
        raise Failure("there is no conductor")
    began = time.monotonic()
    victim.kill()
    until(lambda: world.conductor(victim) not in (None, victim), TAKEOVER_MOST_S,
          f"no other conductor within {TAKEOVER_MOST_S} s")
    took = time.monotonic() - began
    victim.start()
    victim.await_ready()
    return {"takeover_s": took}, began, began


def kill_redis(world):
    port = world.redis.primary()
    began = time.monotonic()
    world.redis.kill(port)
    world.redis.start_server(port)
    return {}, began, began


def fail_over(world):
    port = world.redis.primary()
    began = time.monotonic()
    world.redis.kill(port)
    other = PRIMARY_PORT + REPLICA_PORT - port
    until(lambda: world.redis.primary() == other, 30, "the sentinels chose no other primary")
    world.redis.start_server(port, "--replicaof", f"{HUB} {other}")
    return {}, began, began


def stop(world):
    victim = ordinary(world)
    began = time.monotonic()
    victim.child.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    victim.child.send_signal(signal.SIGCONT)
    return {}, began, time.monotonic()


def lasting(world, rule, seconds):
    victim = ordinary(world)
    began = time.monotonic()
    victim.cut_off(rule)
    time.sleep(seconds)
    victim.mend()
    return {}, began, time.monotonic()


def partition(world):
    return lasting(world, "drop", CUT_OFF_S)


def loss(world):
    return lasting(world, f"numgen random mod 100 < {LOSS_PERCENT} drop", LOSSY_S)


FAULTS = (kill_member, kill_conductor, kill_redis, fail_over, stop, partition, loss)


def endure(world, fault):
    """A crowd before, while and after a fault."""
    with crowd(world, "--visitors", CROWD, "--over", 2, "--forever") as (_, seen), \
            Samples(world) as samples:
        time.sleep(FORMING_S)
        steady_from = time.monotonic()
        time.sleep(BEFORE_S)
        steady = samples.rate(steady_from, time.monotonic())
        if steady == 0:
            raise Failure(f"{fault.__name__}: nobody was let in before it")
        figures, began, ended = fault(world)
        time.sleep(AFTER_S)
        now = time.monotonic()
        again = samples.again_at(0.8 * steady, ended)
        figures["throughput"] = samples.rate(began, now) / steady
        if again:
            figures["recover_s"] = again - ended
    figures["rate"] = steady
    figures["admitted_over"] = max(held_over(seen), shop_over(seen))
    figures["lost"] = seen["lost"]
    if "takeover_s" in figures:
        yield {"takeover_s": figures.pop("takeover_s")}
    yield {f"{fault.__name__}_{key}": value for key, value in figures.items()}


# --- what the appliances have measured themselves

def shown(world):
    found = [one.show("cluster") for one in world.appliances]
    if None in found:
        raise Failure("not every appliance answers")
    return found


def shown_over(world):
    return max(one["over_admitted_max"] for one in shown(world))


def as_propagated(world):
    """How long a word of the conductor takes until the slowest goes by it."""
    found = [one.get("propagation_p99_ms") for one in shown(world)]
    if None in found:
        raise Failure("not every appliance says how long the conductor's word takes")
    yield {"propagation_p99_ms": max(found)}
