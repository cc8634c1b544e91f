"""Goal: what is sent arrives whole over a path that loses packets, and not much later than the
kernel's own TCP would have it.

Visitor, router and appliance each have a network of their own. The router drops what it forwards,
so that neither end knows of it but by what does not come.

Where the kernel serves instead of ours it uses CUBIC, whatever the machine's default: it is
Debian's, and ours, so that loss recovery is compared with loss recovery. (BBR takes no loss for
congestion, and so has another window at the same loss.) Visitors are as the machine is.
"""
import concurrent.futures
import contextlib
import functools
import hashlib
import http.client
import json
import os
import random
import socket
import time

import network
import pytest
from network import Namespace, as_a_wire, command
from sluice import Origin, Sluice

pytestmark = [pytest.mark.bypass("af_packet"), pytest.mark.once]

MB = 1 << 20
NARROW = "10mbit"  # its queue holds a window at this loss: full while anything is in flight
PAIRS = (5, 9, 15)  # after so many, if the median falls short, others are run
VISITOR = {4: ("10.78.0.1/24", "10.78.0.254/24"), 6: ("fd01::1/64", "fd01::fe/64")}
APPLIANCE = {4: ("10.77.0.2/24", "10.77.0.1/24"), 6: ("fd00::2/64", "fd00::1/64")}
TOP = {"http": {"head_timeout": "2m", "body_timeout": "20m", "send_timeout": "2m", "rate_min": "0"}}
BLOCK = random.Random(20261201).randbytes(MB)


@functools.lru_cache(maxsize=4)
def body_of(size):
    return (BLOCK * (size // MB + 1))[:size]


class Hashing(Origin):
    """/bytes/N answers with so many; any other path with the hash of what was sent."""

    def answer(self, handler, body):
        out = json.dumps({"hash": hashlib.sha256(body).hexdigest(), "bytes": len(body)}).encode()
        if handler.path.startswith("/bytes/"):
            out = body_of(int(handler.path.rsplit("/", 1)[1]))
        with self.lock:
            self.seen.clear()  # they are large
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(out)))
        handler.end_headers()
        handler.wfile.write(out)


class Path:
    """Visitor, router, and an appliance that is reached by `driver`. Also what Sluice wants of a
    link."""

    host, address, peer, family = "10.77.0.2", "10.77.0.2", "10.78.0.1", socket.AF_INET

    def __init__(self, driver):
        self.driver = driver
        self.visitor, self.router, self.home = Namespace(), Namespace(), Namespace()
        self.join("path0", self.visitor, VISITOR, "router0", VISITOR)
        self.join("path1", self.home, APPLIANCE if driver == "sockets" else {}, "router1",
                  APPLIANCE)
        with self.router.entered():
            for key in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
                with open(f"/proc/sys/net/{key}", "w", encoding="ascii") as file:
                    file.write("1")
        with self.visitor.entered():
            self.route(VISITOR)
        if driver == "sockets":
            with self.home.entered():
                self.route(APPLIANCE, "congctl", "cubic")

    def join(self, name, where, addresses, router_name, router_addresses):
        """A wire from `name` in `where` to the router."""
        with where.entered():
            command("ip", "link", "add", name, "type", "veth", "peer", "name", router_name,
                    "netns", self.router.path)
            self.bring_up(name, addresses, 0)
        with self.router.entered():
            self.bring_up(router_name, router_addresses, 1)

    def bring_up(self, name, addresses, end):
        command("ip", "link", "set", name, "up")
        as_a_wire(name)
        for family, pair in addresses.items():
            command("ip", f"-{family}", "address", "add", pair[end], "dev", name,
                    *(["nodad"] if family == 6 else []))

    def route(self, network_of, *more):
        for family, (_, router) in network_of.items():
            command("ip", f"-{family}", "route", "add", "default", "via", router.split("/")[0],
                    *more)

    def lose(self, percent):
        rule = f"numgen random mod 1000 < {percent * 10} drop" if percent else "accept"
        rules = f"""table inet loss
            delete table inet loss
            table inet loss {{
                chain way {{
                    type filter hook forward priority 0
                    meta l4proto tcp {rule}
                }}
            }}"""
        with self.router.entered():
            command("nft", rules)

    def narrow(self, rate):
        """So many bits a second either way: neither end's share of the machine is what counts."""
        shaping = f"tbf rate {rate} burst 3000 limit 200000" if rate else "pfifo_fast"
        with self.router.entered():
            for name in ("router0", "router1"):
                command("tc", "qdisc", "replace", "dev", name, "root", *shaping.split())

    def config(self):
        if self.driver == "sockets":
            return {"workers": [max(os.sched_getaffinity(0))]}
        port = {"device": f"net_{self.driver}0,iface=path1",
                "addresses": [pair[0] for pair in APPLIANCE.values()],
                "gateways": [pair[1].split("/")[0] for pair in APPLIANCE.values()]}
        return {"driver": "dpdk", "workers": [max(os.sched_getaffinity(0))],
                "dpdk": {"hugepages": "off", "ports": [port]}}

    def plug(self):
        pass

    def unplug(self):
        for one in (self.visitor, self.router, self.home):
            one.close()


class Run:
    """An appliance behind such a path, with an origin that hashes."""

    def __init__(self, driver):
        path = Path(driver)
        with path.home.entered():
            self.origin = Hashing()
            self.sluice = Sluice(self.origin.port, link=path, rooms=[], top=TOP)
            self.sluice.config["sites"][0]["origin"]["answer_timeout"] = "20m"
            self.sluice.config["listen"].append({"address": f"[fd00::2]:{self.sluice.port}"})
            self.sluice.start()

    def connect(self, family, timeout):
        host = APPLIANCE[family][0].split("/")[0]
        one = http.client.HTTPConnection(host, self.sluice.port, timeout=timeout)
        with self.sluice.link.visitor.entered():
            one.connect()
        return contextlib.closing(one)

    def down(self, family, size, timeout=120):
        """Seconds that it took."""
        with self.connect(family, timeout) as one:
            began = time.monotonic()
            one.request("GET", f"/bytes/{size}", headers={"Host": "localhost"})
            assert one.getresponse().read() == body_of(size)
            return time.monotonic() - began

    def up(self, family, size, timeout=120):
        body = body_of(size)
        with self.connect(family, timeout) as one:
            began = time.monotonic()
            one.request("POST", "/hash", body=body, headers={"Host": "localhost"})
            response = one.getresponse()
            told = response.read()
            assert response.status == 200, told
            assert json.loads(told) == {"hash": hashlib.sha256(body).hexdigest(), "bytes": size}
            return time.monotonic() - began

    def destroy(self):
        self.sluice.destroy()
        self.origin.stop()


@pytest.fixture(scope="module")
def ours():
    run = Run(network.DEVICE)
    yield run
    run.destroy()


@pytest.mark.parametrize("percent,size", [
    (0, 50 * MB), (1, 50 * MB), (5, 5 * MB), (20, 300_000),
    pytest.param(5, 50 * MB, marks=pytest.mark.long),
    pytest.param(20, 5 * MB, marks=pytest.mark.long),
])
def test_all_arrives(ours, percent, size):
    """Both ways and over both families, at once."""
    ours.sluice.link.lose(percent)
    is_long = size * percent > 50 * MB
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        ways = {(way.__name__, family): pool.submit(way, family, size, 1200 if is_long else 240)
                for way in (ours.down, ours.up) for family in (4, 6)}
    took = {way: f"{future.result():.2f} s" for way, future in ways.items()}
    print(f"{size} bytes at {percent} %: {took}")


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]


@pytest.mark.parametrize("way", ["down", "up"])
@pytest.mark.parametrize("rate,size,target", [
    pytest.param(NARROW, 2 * MB, 0.9, id="narrow"),
    pytest.param(None, 8 * MB, 0.8, id="wide", marks=[pytest.mark.alone, pytest.mark.long]),
])
def test_goodput_is_near_that_of_the_kernel(ours, way, rate, size, target):
    """Turn by turn, so that the machine's moods meet both; what counts is the median of all.

    A narrow path is full unless an end waits for a timeout, on a busy machine too. A wide one is
    as fast as both ends, which only an idle machine can tell.
    """
    kernel = Run("sockets")
    shares = []
    try:
        for one in (ours, kernel):
            one.sluice.link.lose(1)
            one.sluice.link.narrow(rate)
        while len(shares) < PAIRS[-1]:
            ours_s, kernel_s = (getattr(one, way)(4, size) for one in (ours, kernel))
            shares.append(kernel_s / ours_s)
            print(f"ours {ours_s:.3f} s, the kernel's {kernel_s:.3f} s")
            if len(shares) in PAIRS and median(shares) >= target:
                break
    finally:
        kernel.destroy()
        ours.sluice.link.narrow(None)
    assert median(shares) >= target, shares
