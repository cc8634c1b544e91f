"""polls: cycles of the DPDK driver, one worker against clients made of frames.

The generator (packets/) is a process of its own on the first core; net_memif carries frames between
it and the real program, whose one worker has the last core to itself. Cycles are the worker's own:
of the time stamp counter, in turns that took something in. nginx serves polls of the same size on
the worker's core, in turns with sluice, which stands still meanwhile.

Whatever else happens on the machine only ever adds cycles. So there are many short windows, spread
over the whole run, all modes and nginx in turns: the best window of a figure is what the program
costs, and the median of all is said beside it. Polls whose token is computed and polls whose token
is remembered are asked of one process, window after window, so that both have the same minutes and
the same luck with addresses.
"""
import contextlib
import functools
import json
import re
import signal
import statistics
import subprocess
import time

import suite_peers
from suite_peers import NAVIGATION, SCRIPT, head, load
from world import BUILD, Failure, children_of, cores, ending_with_us, folder, \
    go_first, rss_kb, shop, sluice, those_taken

TAKES = "takes about four minutes"
ROUNDS = 7  # in each, every mode has its turn
WINDOWS = 5  # of each of its figures, in a turn
WINDOW_S = 0.15
NGINX_S = 0.5
WARM_S = 0.2
CHANGE_S = 0.1  # in which every flow has polled again
FLOWS = 10_000
WINDOW = 256  # flows with something under way: what keeps the bursts full
LOST_MAX = 0.01  # of the answers: frames are lost where something else takes a core for a while
IDLE_FLOWS = 1_000_000
FEW_FLOWS = 100
SERVER = "10.0.0.1"
ROOM = {"capacity": 1, "session": "1h"}  # one is inside; everybody else waits
QUICK = {"ROUNDS": 1, "WINDOWS": 2, "WINDOW_S": 0.1, "NGINX_S": 0.2, "FLOWS": 1000,
         "IDLE_FLOWS": 10_000}

# A mode of the generator, the counter of its items, and its figures: of each, what the generator is
# told before a window of it, and what nearly all of the items then are, else it is not what is
# measured.
MODES = (
    ("polls", ("worker", "polls"), {"mac": (signal.SIGUSR2, "checked"),
                                    "remembered": (signal.SIGUSR1, "remembered")}),
    ("connections", ("worker", "polls"), {"connection": None}),
    ("arrivals", ("worker", "tickets"), {"arrival": None}),
    ("syn", ("tcp", "syn_answered"), {"syn": None}),
)
SHARE_MIN = 0.99


def run():
    with folder() as at, shop(at) as shop_port:
        write_heads(at)
        yield from those_taken(busy(at, shop_port), idle(at, shop_port))


def busy(at, shop_port):
    """Windows of all modes in turns, those of polls in pairs with nginx."""
    samples = {name: [] for *_, figures in MODES for name in figures}
    pairs, failures = [], {}
    answer_bytes = size_of_an_answer(at, shop_port)
    with suite_peers.nginx(at, answer_bytes, cores()[-1]) as nginx:
        for _ in range(ROUNDS):
            for mode, counter, figures in MODES:
                try:
                    with appliance(at, shop_port, 20 * FLOWS) as one, \
                            generator(at, mode, FLOWS, one) as child:
                        windows = visit(one, child, counter, figures)
                        if mode == "polls":
                            theirs = beside(at, one, child, nginx)
                except Failure as failure:  # something else took a core: the others still count
                    failures.update(dict.fromkeys(figures, failure))
                    continue
                for name in figures:
                    samples[name] += windows[name]
                if mode == "polls":
                    pairs.append((statistics.median(w["cycles"] for w in windows["mac"]), theirs))
    yield from those_taken(*(summary(name, samples[name], failures) for name in samples),
                           ratio(pairs, failures))


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
    """Started; killed in the end, without a drain, since its clients are gone by then."""
    (at / "memif").unlink(missing_ok=True)
    port = {"device": device(at, "server"), "addresses": [f"{SERVER}/8"]}
    with sluice(at, shop_port, ROOM, connections, goes_first=True, workers=[cores()[-1]],
                driver="dpdk", dpdk={"hugepages": "off", "ports": [port]},
                listen=[{"address": f"{SERVER}:80"}], hosts=[SERVER]) as one:
        try:
            yield one
        finally:
            one.child.kill()


@contextlib.contextmanager
def generator(at, mode, flows, one):
    """Started, and all its flows stand. In the end the appliance stands still, and stays so.

    When one end of net_memif leaves, the other unmaps the rings that they shared, even while its
    own worker reads them: so no end leaves while the other one moves.
    """
    draws = "arrival" if mode == "arrivals" else "draw"
    command = [BUILD / "bench/packets", "--mode", mode, "--device", device(at, "client"),
               "--server", f"{SERVER}:80", "--arrival", at / draws, "--poll", at / "poll",
               "--flows", flows, "--window", min(WINDOW, flows), "--seconds", 600,
               "--core", cores()[0]]
    child = subprocess.Popen(ending_with_us(command), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, preexec_fn=go_first)
    try:
        if child.stdout.readline() != "warm\n":
            child.kill()
            raise Failure(f"packets: {child.stderr.read().strip()}{ending_of(one)}")
        yield child
        one.child.send_signal(signal.SIGSTOP)
        child.terminate()
        report = json.loads(child.communicate(timeout=20)[0])
        lost = report["stalled"] + report["dropped"] + report["refused"] + report["resets"]
        if mode not in ("syn", "idle") and lost > report["answers"] * LOST_MAX:
            raise Failure(f"packets: {mode}: {report}")
    finally:
        if one.child.poll() is None:
            one.child.send_signal(signal.SIGSTOP)
        if child.poll() is None:
            child.kill()
        child.wait()


def ending_of(one):
    """What is to be added to what its clients say of an appliance: that it is gone, if it is."""
    status = one.child.poll()
    return "" if status is None else f"; sluice ended before, with {status}"


def sample(one, counter):
    """What the worker did in a window."""
    before, began = one.counters(), time.monotonic()
    time.sleep(WINDOW_S)
    after, gone = one.counters(), time.monotonic() - began
    delta = {key: after[key] - before[key] for key in after}
    if delta[counter] == 0:
        raise Failure(f"nothing was counted as {' '.join(counter)}{ending_of(one)}")
    turns = max(delta["worker", "busy_turns"], 1)
    return {"cycles": delta["worker", "busy_cycles"] / delta[counter],
            "rate": delta[counter] / gone,
            "burst": delta["ethdev", "frames_in"] / turns,
            "remembered": delta["worker", "tokens_remembered"] / delta[counter],
            "checked": delta["worker", "tokens"] / delta[counter]}


def window_of(one, child, counter, name, told):
    """A window of a figure, for which the generator may have to be told something."""
    if told:
        child.send_signal(told[0])
        time.sleep(CHANGE_S)
    window = sample(one, counter)
    if child.poll() is not None:
        raise Failure(f"packets: {name}: {child.stderr.read().strip()}")
    if told and window[told[1]] < SHARE_MIN:
        raise Failure(f"{name}: of the tokens, not all were {told[1]}")
    return window


def visit(one, child, counter, figures):
    """The windows of one turn of a mode, its figures one after the other, again and again."""
    windows = {name: [] for name in figures}
    time.sleep(WARM_S)
    for _ in range(WINDOWS):
        for name, told in figures.items():
            windows[name].append(window_of(one, child, counter, name, told))
    return windows


def summary(name, samples, failures):
    if len(samples) < ROUNDS * WINDOWS / 2:
        raise failures[name]
    best = min(samples, key=lambda window: window["cycles"])
    yield {f"cycles_{name}": best["cycles"],
           f"cycles_median_{name}": statistics.median(window["cycles"] for window in samples),
           f"rate_{name}": statistics.median(window["rate"] for window in samples),
           f"burst_{name}": best["burst"]}


@functools.cache
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


def beside(at, one, child, nginx):
    """Cycles of a poll on nginx, while sluice and its generator stand still."""
    polls = at / "polls"
    polls.write_text(head("GET /.sluice/derby/status", {
        **SCRIPT, "Cookie": "sluice-t-derby=" + "A" * 64}))
    port, pid = nginx
    with standing_still(child, one.child):
        took = load(cores()[0], port, polls, children_of(pid),
                    "--connections", 64, "--seconds", NGINX_S)
    return took["cpu_s"] / took["answers"] * tsc_hz()


def ratio(pairs, failures):
    if len(pairs) < ROUNDS / 2:
        raise failures["mac"]
    yield {"cpu_ratio_nginx": statistics.median(theirs / ours for ours, theirs in pairs),
           "nginx_cycles": min(theirs for _, theirs in pairs),
           "nginx_cycles_median": statistics.median(theirs for _, theirs in pairs)}


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
    with appliance(at, shop_port, connections) as one, generator(at, "idle", flows, one):
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
