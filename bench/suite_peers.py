"""peers: a status poll on sluice against nginx `return 200` of the same size.

One worker each, pinned to the same core, the load on another. Every poll carries a ticket of 64
characters, and each connection alternates between two tickets, so that sluice checks a MAC every
time; nginx checks nothing. Same requests, same number of bytes in the answer, no access log,
unlimited keep-alive. Pairs are interleaved, and medians of pairs are reported.
"""
import contextlib
import http.client
import json
import os
import re
import socket
import statistics
import subprocess

from world import BUILD, Failure, HOST, accepts, children_of, cores, ending_with_us, folder, \
    free_port, go_first, process, rss_kb, shop, sluice

TAKES = "takes about four minutes"
PAIRS = 11
CONNECTIONS = (64, 512)
COUNTED_S = 1.5
WRK_S = 1
TICKETS_MINTED = 1_000_000
WARM_TICKETS = 50_000  # every page of every pool that minting touches has been touched
QUICK = {"PAIRS": 1, "COUNTED_S": 0.2, "TICKETS_MINTED": 1000, "WARM_TICKETS": 1000}
BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
                  "Chrome/126.0.0.0 Safari/537.36",
    "Accept-Encoding": "gzip, deflate, br",
    "Accept-Language": "en-US,en;q=0.9",
}
NAVIGATION = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document",
    **BROWSER,
}
SCRIPT = {
    "Accept": "application/json",
    "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty",
    **BROWSER,
}
NGINX = """\
user root;
daemon off;
worker_processes 1;
worker_cpu_affinity {mask:b};
pid {at}/nginx.pid;
error_log {at}/nginx-error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  server_tokens off;
  keepalive_requests 2000000000;
  keepalive_timeout 1h;
  default_type application/json;
  client_body_temp_path {at}/t1; proxy_temp_path {at}/t2; fastcgi_temp_path {at}/t3;
  uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;
  server {{
    listen {host}:{port} backlog=4096;
    location / {{ return 200 '{body}'; }}
  }}
}}
"""


def run():
    served, loading = cores()[-1], cores()[0]
    room = {"capacity": 1, "session": "1h"}  # one is inside; everybody else waits
    with folder() as at, shop(at) as shop_port, \
            sluice(at, shop_port, room, 4096, goes_first=True, workers=[served]) as appliance:
        bench = Bench(at, appliance, loading)
        yield {"rss_growth_kb": bench.mint()}
        bench.draw_tickets()
        figures = {}
        with nginx(at, bench.answer_size(appliance.port), served) as (port, pid):
            for connections in CONNECTIONS:
                figures.update(bench.compare(connections, port, children_of(pid)))
        yield {**bench.checked_share(), **figures}


def head(method_and_path, fields):
    lines = [f"{method_and_path} HTTP/1.1", f"Host: {HOST}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join(lines) + "\r\n\r\n"


def load(core, port, requests, pids, *options):
    """A closed loop of requests; answers, seconds, and the CPU seconds of those processes."""
    command = [BUILD / "bench/loader", "--port", port, "--requests", requests,
               "--core", core, *options]
    for pid in pids:
        command += ["--pid", pid]
    run = subprocess.run(ending_with_us(command), capture_output=True, text=True, timeout=600,
                         preexec_fn=go_first)
    if run.returncode != 0:
        raise Failure(run.stderr.strip())
    return json.loads(run.stdout)


class Bench:
    def __init__(self, at, appliance, core):
        self.at, self.appliance, self.core = at, appliance, core
        self.polls = at / "polls"  # request heads
        self.one_poll = None

    def load(self, port, requests, pids, *options):
        return load(self.core, port, requests, pids, *options)

    def mint(self):
        """Resident memory that a million tickets add, in kB."""
        arrivals = self.at / "arrivals"
        arrivals.write_text(head("GET /derby/", NAVIGATION))
        self.enter()
        pid = self.appliance.child.pid
        options = ("--connections", 64, "--warm", 0, "--answers")
        self.load(self.appliance.port, arrivals, [pid], *options, WARM_TICKETS)
        before_kb, minted = rss_kb(pid), self.minted()
        self.load(self.appliance.port, arrivals, [pid], *options, TICKETS_MINTED)
        minted = self.minted() - minted
        if minted < TICKETS_MINTED:
            raise Failure(f"{minted} tickets minted, not {TICKETS_MINTED}")
        return rss_kb(pid) - before_kb

    def enter(self):
        """Take the only place inside."""
        client = http.client.HTTPConnection(HOST, self.appliance.port, timeout=10)
        client.request("GET", "/derby/", headers=NAVIGATION)
        answer = client.getresponse()
        client.close()
        if answer.headers.get("Sluice-State"):
            raise Failure("the first visitor was not let in")

    def counter(self, name):
        rows = self.appliance.show("counters")
        return counter_of(rows, name)

    def minted(self):
        return self.counter("tickets")

    def draw_tickets(self):
        """Two tickets for each connection, and the polls that carry them."""
        client = http.client.HTTPConnection(HOST, self.appliance.port, timeout=10)
        heads = []
        for _ in range(2 * max(CONNECTIONS)):
            client.request("GET", "/derby/", headers=NAVIGATION)
            answer = client.getresponse()
            answer.read()
            cookie = re.match("sluice-t-derby=[^;]{64}", answer.headers.get("Set-Cookie", ""))
            if not cookie:
                raise Failure("no ticket was drawn")
            heads.append(head("GET /.sluice/derby/status", {**SCRIPT, "Cookie": cookie[0]}))
        client.close()
        self.polls.write_text("".join(heads))
        self.one_poll = heads[-1]

    def answer_size(self, port):
        """Bytes of the whole answer to a poll, head and body."""
        return len(raw_answer(port, self.one_poll))

    def compare(self, connections, nginx_port, nginx_pids):
        """Pairs by the loader, then pairs by wrk; who goes first alternates."""
        ours = (self.appliance.port, [self.appliance.child.pid])
        theirs = (nginx_port, nginx_pids)
        figures = summary(connections, pairs_of(
            lambda server: self.measure(connections, *server), ours, theirs))
        rates = pairs_of(lambda server: self.wrk(connections, server[0]), ours, theirs)
        figures[f"wrk_rate_ratio_{connections}"] = statistics.median(
            our_rate / their_rate for our_rate, their_rate in rates)
        return figures

    def measure(self, connections, port, pids):
        load = self.load(port, self.polls, pids, "--connections", connections,
                         "--seconds", COUNTED_S)
        return {"cpu_us": load["cpu_s"] / load["answers"] * 1e6,
                "rate": load["answers"] / load["seconds"],
                "busy": load["cpu_s"] / load["seconds"]}

    def wrk(self, connections, port):
        """The raw rate that wrk reaches, with the same requests."""
        script = self.at / "polls.lua"
        script.write_text(WRK_SCRIPT.format(polls=self.polls))
        command = ["wrk", "-t1", f"-c{connections}", f"-d{WRK_S}", "-s", script,
                   f"http://{HOST}:{port}/"]
        run = subprocess.run(ending_with_us(command), capture_output=True, text=True, timeout=60,
                             preexec_fn=self.go_first_on_core)
        rate = re.search(r"Requests/sec:\s+([\d.]+)", run.stdout)
        if run.returncode != 0 or not rate or "Non-2xx" in run.stdout:
            raise Failure(f"wrk: {run.stdout}{run.stderr}")
        return float(rate[1])

    def go_first_on_core(self):
        go_first()
        os.sched_setaffinity(0, {self.core})

    def checked_share(self):
        """Share of polls whose MAC was computed, not remembered; without it nothing is compared."""
        computed, remembered = self.counter("tokens"), self.counter("tokens_remembered")
        share = computed / (computed + remembered)
        if share < 0.99:
            raise Failure(f"only {share:.3f} of the MACs were computed")
        return {"macs_checked_share": share}


WRK_SCRIPT = """\
local polls = {{}}
local text = io.open("{polls}"):read("*a")
for poll in text:gmatch("(.-\\r\\n\\r\\n)") do polls[#polls + 1] = poll end
local i = 0
request = function()
  i = i % #polls + 1
  return polls[i]
end
"""


def counter_of(rows, name):
    """`show counters --json`: rows of part, counter, value."""
    for row in rows:
        if row["part"] == "worker" and row["counter"] == name:
            return row["value"]
    raise Failure(f"no counter {name}")


def pairs_of(measure, ours, theirs, count=None):
    """What both come to, PAIRS times or `count`, one right after the other."""
    pairs = []
    for i in range(count or PAIRS):
        if i % 2 == 0:
            pairs.append((measure(ours), measure(theirs)))
        else:
            pairs.append((measure(theirs), measure(ours))[::-1])
    return pairs


def summary(connections, pairs):
    def median(of):
        return statistics.median(of(ours, theirs) for ours, theirs in pairs)

    n = connections
    return {
        f"cpu_ratio_{n}": median(lambda ours, theirs: theirs["cpu_us"] / ours["cpu_us"]),
        f"rate_ratio_{n}": median(lambda ours, theirs: ours["rate"] / theirs["rate"]),
        f"cpu_us_{n}": median(lambda ours, theirs: ours["cpu_us"]),
        f"cpu_us_nginx_{n}": median(lambda ours, theirs: theirs["cpu_us"]),
        f"rate_{n}": median(lambda ours, theirs: ours["rate"]),
        f"rate_nginx_{n}": median(lambda ours, theirs: theirs["rate"]),
        f"busy_{n}": median(lambda ours, theirs: ours["busy"]),
        f"busy_nginx_{n}": median(lambda ours, theirs: theirs["busy"]),
    }


def raw_answer(port, request):
    """The bytes of one answer."""
    with contextlib.closing(socket.create_connection((HOST, port), timeout=10)) as sock:
        sock.sendall(request.encode())
        got = b""
        while b"\r\n\r\n" not in got:
            got += sock.recv(65536)
        length = int(re.search(rb"\r\nContent-Length: (\d+)", got)[1])
        whole = got.index(b"\r\n\r\n") + 4 + length
        while len(got) < whole:
            got += sock.recv(65536)
        return got


@contextlib.contextmanager
def nginx(at, answer_bytes, core):
    """nginx, whose answers have that many bytes. Gives out its port and the master's pid."""
    port, body = free_port(), "x" * 100
    for _ in range(3):  # the length of the body is in the head
        with nginx_once(at, port, core, body) as child:
            size = len(raw_answer(port, head("GET /", SCRIPT)))
            if size == answer_bytes:
                yield port, child.pid
                return
        body = "x" * (len(body) + answer_bytes - size)
    raise Failure("nginx did not come to the same size")


@contextlib.contextmanager
def nginx_once(at, port, core, body):
    path = at / "nginx.conf"
    path.write_text(NGINX.format(at=at, host=HOST, port=port, mask=1 << core, body=body))
    with process(["nginx", "-c", path, "-e", at / "nginx-error.log"], at / "nginx.log",
                 lambda: accepts(port), goes_first=True) as child:
        yield child
