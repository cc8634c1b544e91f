"""polls: cycles of the DPDK driver, one worker against clients made of frames.

The generator (packets/) is a process of its own on the first core; net_memif carries frames between
it and the real program, whose one worker has the last core to itself. Cycles are the worker's own:
of the time stamp counter, in turns that took something in. nginx serves polls of the same size on
the worker's core, in turns with sluice, which stands still meanwhile.
"""
import contextlib
import json
import re
import signal
import statistics
import subprocess
import time

import suite_peers
from suite_peers import NAVIGATION, SCRIPT, head, load
from world import BUILD, Failure, children_of, cores, ending_with_us, folder, go_first, rss_kb, \
    shop, sluice, those_taken

TAKES = "takes about three minutes"
PAIRS = 9
MEASURED_S = 1.0
WARM_S = 0.3
FLOWS = 10_000
WINDOW = 256  # flows with something under way: what keeps the bursts full
LOST_MAX = 0.01  # of the answers: frames are lost where something else takes a core for a while
IDLE_FLOWS = 1_000_000
FEW_FLOWS = 100
SERVER = "10.0.0.1"
ROOM = {"capacity": 1, "session": "1h"}  # one is inside; everybody else waits
QUICK = {"PAIRS": 1, "MEASURED_S": 0.2, "FLOWS": 1000, "IDLE_FLOWS": 10_000}

# Modes of the generator, figure, and counter of the items; `polls` is measured beside nginx.
MODES = (
    ("remembered", "remembered", ("worker", "polls")),
    ("connections", "connection", ("worker", "polls")),
    ("arrivals", "arrival", ("worker", "tickets")),
    ("syn", "syn", ("tcp", "syn_answered")),
)


def run():
    with folder() as at, shop(at) as shop_port:
        write_heads(at)
        yield from those_taken(busy(at, shop_port), idle(at, shop_port))


def busy(at, shop_port):
    answer_bytes = size_of_an_answer(at, shop_port)
    with appliance(at, shop_port, 20 * FLOWS) as one:
        yield from those_taken(against_nginx(at, one, answer_bytes),
                               *(cycles(at, one, *mode) for mode in MODES))


def write_heads(at):
    fields = {**SCRIPT, "Cookie": "sluice-t-derby=@"}
    for name, text in (("draw", head("GET /derby/", SCRIPT)),
                       ("arrival", head("GET /derby/", NAVIGATION)),
                       ("poll", head("GET /.sluice/derby/status", fields))):
        (at / name).write_text(text.replace("127.0.0.1", SERVER))


def device(at, role):
    return (f"net_memif0,role={role},id=0,socket-abstract=no,socket={at}/memif,"
            "rsize=11,bsize=2048")


@contextlib.contextmanager
def appliance(at, shop_port, connections):
    port = {"device": device(at, "server"), "addresses": [f"{SERVER}/8"]}
    with sluice(at, shop_port, ROOM, connections, goes_first=True, workers=[cores()[-1]],
                driver="dpdk", dpdk={"hugepages": "off", "ports": [port]},
                listen=[{"address": f"{SERVER}:80"}], hosts=[SERVER]) as one:
        yield one


@contextlib.contextmanager
def generator(at, mode, flows, *options):
    """Started, and all its flows stand."""
    draws = "arrival" if mode == "arrivals" else "draw"
    command = [BUILD / "bench/packets", "--mode", mode, "--device", device(at, "client"),
               "--server", f"{SERVER}:80", "--arrival", at / draws, "--poll", at / "poll",
               "--flows", flows, "--window", min(WINDOW, flows), "--seconds", 600,
               "--core", cores()[0], *options]
    child = subprocess.Popen(ending_with_us(command), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, preexec_fn=go_first)
    try:
        if child.stdout.readline() != "warm\n":
            child.kill()
            raise Failure(f"packets: {child.stderr.read().strip()}")
        yield child
        child.terminate()
        report = json.loads(child.communicate(timeout=20)[0])
        lost = report["stalled"] + report["dropped"] + report["refused"] + report["resets"]
        if mode not in ("syn", "idle") and lost > report["answers"] * LOST_MAX:
            raise Failure(f"packets: {mode}: {report}")
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()


def counters(one):
    return {(row["part"], row["counter"]): row["value"] for row in one.show("counters")}


def sample(one, counter):
    """What the worker did in that time."""
    before = counters(one)
    began = time.monotonic()
    time.sleep(MEASURED_S)
    after = counters(one)
    gone = time.monotonic() - began
    delta = {key: after[key] - before[key] for key in after}
    if delta[counter] == 0:
        raise Failure(f"nothing was counted as {counter}")
    turns = max(delta["worker", "busy_turns"], 1)
    return {"cycles": delta["worker", "busy_cycles"] / delta[counter],
            "rate": delta[counter] / gone,
            "burst": delta["ethdev", "frames_in"] / turns,
            "remembered": delta["worker", "tokens_remembered"] / delta[counter],
            "checked": delta["worker", "tokens"] / delta[counter]}


def summary(name, samples):
    def median(key):
        return statistics.median(one[key] for one in samples)

    return {f"cycles_{name}": median("cycles"), f"rate_{name}": median("rate"),
            f"burst_{name}": median("burst")}


def cycles(at, one, mode, name, counter):
    with generator(at, mode, FLOWS) as child:
        time.sleep(WARM_S)
        samples = [sample(one, counter) for _ in range(3)]
        if child.poll() is not None:
            raise Failure(f"packets: {child.stderr.read().strip()}")
    if name == "remembered" and min(s["remembered"] for s in samples) < 0.99:
        raise Failure("tokens were not remembered")
    yield summary(name, samples)


def tsc_hz():
    """Cycles of the time stamp counter in a second, as the kernel found them."""
    for line in subprocess.run(["dmesg"], capture_output=True, text=True).stdout.splitlines():
        if "tsc: Detected" in line or "tsc: Refined" in line:
            return float(line.split("MHz")[0].split()[-1]) * 1e6
    for line in open("/proc/cpuinfo"):
        if line.startswith("cpu MHz"):
            return float(line.split(":")[1]) * 1e6
    raise Failure("how fast the time stamp counter runs is not known")


@contextlib.contextmanager
def standing_still(*children):
    for child in children:
        child.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for child in children:
            child.send_signal(signal.SIGCONT)


def against_nginx(at, one, answer_bytes):
    """Polls with every MAC computed, in turns with nginx on the same core."""
    hz, polls = tsc_hz(), at / "polls"
    polls.write_text(head("GET /.sluice/derby/status", {
        **SCRIPT, "Cookie": "sluice-t-derby=" + "A" * 64}))
    pairs = []
    with generator(at, "polls", FLOWS) as child, \
            suite_peers.nginx(at, answer_bytes, cores()[-1]) as (port, pid):
        for _ in range(PAIRS):
            time.sleep(WARM_S)
            ours = sample(one, ("worker", "polls"))
            with standing_still(child, one.child):
                theirs = load(cores()[0], port, polls, children_of(pid),
                              "--connections", 64, "--seconds", MEASURED_S)
            pairs.append((ours, theirs["cpu_s"] / theirs["answers"]))
    checked = min(ours["checked"] for ours, _ in pairs)
    if checked < 0.99:
        raise Failure(f"only {checked:.3f} of the MACs were computed")
    ratio = statistics.median(theirs * hz / ours["cycles"] for ours, theirs in pairs)
    yield {**summary("mac", [ours for ours, _ in pairs]), "cpu_ratio_nginx": ratio,
           "nginx_cycles": statistics.median(theirs * hz for _, theirs in pairs)}


def size_of_an_answer(at, shop_port):
    """Bytes of the whole answer to a poll, as the sockets driver gives it; they are the same."""
    with sluice(at, shop_port, ROOM, 1000) as one:
        bench = suite_peers.Bench(at, one, cores()[0])
        bench.enter()
        bench.draw_tickets()
        return bench.answer_size(one.port)


def resident(at, shop_port, flows):
    """Resident kB of an appliance for so many idle connections, all open, and its configuration."""
    connections = flows * 10 // 9 + 1000  # at nine tenths the longest idle make room
    with appliance(at, shop_port, connections) as one, generator(at, "idle", flows):
        open_now = sum(row["connections"] for row in one.show("workers"))
        if open_now < flows:
            raise Failure(f"only {open_now} connections are open")
        return rss_kb(one.child.pid), one.path


def billed(path):
    """Bytes that an idle connection takes by `sluice check`."""
    told = subprocess.run([BUILD / "sluice", "check", "-c", path], capture_output=True, text=True)
    line = re.search(r"^an idle connection: (\d+) bytes$", told.stdout, re.MULTILINE)
    if not line:
        raise Failure(f"sluice check does not say what an idle connection takes: {told.stderr}")
    return int(line[1])


def idle(at, shop_port):
    """Resident memory of connections that have asked once and say nothing any more.

    All that grows with them counts, touched by them or not: from what the appliance takes that is
    made for them goes what one takes that is made for a few, and has them.
    """
    few_kb, _ = resident(at, shop_port, FEW_FLOWS)
    many_kb, path = resident(at, shop_port, IDLE_FLOWS)
    more = IDLE_FLOWS - FEW_FLOWS
    yield {"bytes_per_idle_connection": (many_kb - few_kb) * 1024 / more,
           "idle_connections": IDLE_FLOWS, "idle_resident_mb": many_kb / 1024,
           "bytes_billed_per_idle_connection": billed(path)}
