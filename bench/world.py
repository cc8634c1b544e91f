"""What the suites start, on loopback and in a folder of their own: sluice, the shop, nginx.

Everything is ended by pid and its folder removed when its `with` block is left. Where no block is
left any more, because somebody has killed bench/run, the kernel ends what it started: see
ending_with_us().
"""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
START_S = 20
STOP_S = 20
HOST = "127.0.0.1"


class Failure(Exception):
    """A figure could not be taken, and why."""


def those_taken(*measures):
    """All that they yield; then a Failure if one failed, which harms none of the others."""
    failures = []
    for measure in measures:
        try:
            yield from measure
        except Failure as failure:
            failures.append(str(failure))
    if failures:
        raise Failure("\n".join(failures))


def free_port():
    with contextlib.closing(socket.socket()) as sock:
        sock.bind((HOST, 0))
        return sock.getsockname()[1]


@contextlib.contextmanager
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def ending_with_us(command, signal_name="KILL"):
    """The command, to be sent that signal when this process is gone, even by kill -9.

    The command's own children are not: one that has some ends them itself, at SIGTERM.
    """
    return ["setpriv", "--pdeathsig", signal_name, "--", *(str(word) for word in command)]


def go_first():
    """In a child: before all else that runs on this machine, where that is allowed.

    What is measured should not be who else is at work. The autogroup is what the scheduler looks
    at where each session is a group of its own (CONFIG_SCHED_AUTOGROUP), else the nice value.
    """
    os.setsid()
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        pathlib.Path("/proc/self/autogroup").write_text("-20")


@contextlib.contextmanager
def process(command, log, ready, goes_first=False, signal_name="TERM"):
    """Start `command`; give it out once ready() is true; end it with SIGTERM.

    signal_name: what it is sent when this process is gone.
    """
    with open(log, "wb") as out:
        child = subprocess.Popen(ending_with_us(command, signal_name), stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=out,
                                 preexec_fn=go_first if goes_first else None)
    try:
        until = time.monotonic() + START_S
        while not ready():
            if child.poll() is not None or time.monotonic() > until:
                tail = pathlib.Path(log).read_text(errors="replace")[-2000:]
                raise Failure(f"{command[0]} did not start:\n{tail}")
            time.sleep(0.05)
        yield child
    finally:
        child.terminate()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def accepts(port):
    with contextlib.suppress(OSError):
        socket.create_connection((HOST, port), timeout=1).close()
        return True
    return False


class Sluice:
    """One appliance with one room, `derby`."""

    def __init__(self, path, port, child):
        self.path, self.port, self.child = path, port, child

    def show(self, *what):
        # First as well: workers and generators that never sleep would leave it a hundredth.
        run = subprocess.run([BUILD / "sluice", "show", *what, "--json", "-c", self.path],
                             capture_output=True, text=True, timeout=20, preexec_fn=go_first)
        if run.returncode != 0:
            raise Failure(f"sluice show: {run.stderr}")
        return json.loads(run.stdout)

    def counters(self):
        """All of them, without a process that would take a core for a while."""
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as sock:
            sock.settimeout(20)
            sock.connect(str(pathlib.Path(self.path).parent / "state/admin.socket"))
            sock.sendall(b'{"command":"show","arguments":["counters"]}\n')
            rows = json.loads(sock.makefile("rb").readline())["data"]
        return {(row["part"], row["counter"]): row["value"] for row in rows}


@contextlib.contextmanager
def sluice(at, origin_port, room, connections, goes_first=False, hosts=(HOST,), **top):
    """Start sluice in the folder `at`, in front of that origin. `top`: keys of the top level."""
    port = free_port()
    config = {
        "listen": [{"address": f"{HOST}:{port}"}],
        "state": str(at / "state"),
        "user": "root",
        "connections": connections,
        "connections_per_source": connections,
        "origin_connections": 1000,
        "sites": [{"name": "shop", "hosts": list(hosts),
                   "origin": {"servers": [f"{HOST}:{origin_port}"]},
                   "rooms": [dict({"name": "derby", "path": "/derby"}, **room)]}],
    }
    config.update(top)
    path = at / "sluice.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML
    log = at / "sluice.log"
    command = [BUILD / "sluice", "run", "-c", path]
    with process(command, log, lambda: ": ready" in log.read_text(errors="replace"),
                 goes_first, "KILL") as child:  # SIGTERM would let it drain first
        pass_on_warnings(log)
        yield Sluice(path, port, child)


def pass_on_warnings(log):
    """Such as that io_uring is refused: it changes what is measured."""
    for line in log.read_text(errors="replace").splitlines():
        if " warning: " in line:
            print(f"bench/run: {line}", file=sys.stderr)


@contextlib.contextmanager
def shop(at, *options):
    port = free_port()
    command = [BUILD / "config/demo/shop", "--port", port, *options]
    with process(command, at / "shop.log", lambda: accepts(port)):
        yield port


def threads_of(pids):
    for pid in pids:
        yield from pathlib.Path(f"/proc/{pid}/task").iterdir()


def children_of(pid):
    """The process and its children."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def cpu_s(pids):
    """CPU seconds that all threads of these processes have used."""
    return sum(int((thread / "schedstat").read_text().split()[0])
               for thread in threads_of(pids)) / 1e9


def rss_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise Failure(f"no VmRSS of {pid}")


def cores():
    return sorted(os.sched_getaffinity(0))
