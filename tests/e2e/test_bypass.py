"""Goal: a network card of our own serves as the kernel would, and lets the kernel have the rest."""
import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import threading
import time

import network
import pytest
from network import Namespace, command
from sluice import wait_for

pytestmark = pytest.mark.bypass

ASK = b"GET /.sluice/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
ABOUT = b"GET /about HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
BODY = random.Random(20261204).randbytes(6 << 20)


def counters(sluice):
    return {(c["part"], c["counter"]): c["value"] for c in sluice.show("counters")}


def counter(sluice, name):
    return sum(value for (_, counted), value in counters(sluice).items() if counted == name)


def ask(sock):
    sock.settimeout(5)
    sock.sendall(ASK)
    return sock.recv(4096)


@pytest.fixture
def on_link(make):
    """on_link(mtu=…): an appliance on a link of that kind."""
    return lambda **keys: make(rooms=[], link=network.link(**keys))


def echo(visitor, sluice, body):
    answer = visitor(sluice).client.post("/echo", content=body, timeout=60)
    assert hashlib.sha256(answer.json()["body"].encode("latin-1")).digest() == hashlib.sha256(
        body).digest()


def sent_twice():
    """Segments that the kernel sent once more, or to probe, in our network: where the appliance is
    late, as on a busy machine, they are out of its window when they come."""
    told = {}
    for name in ("snmp", "netstat"):
        with open(f"/proc/thread-self/net/{name}", encoding="ascii") as file:
            lines = [line.split()[1:] for line in file]
        for names, values in zip(lines[::2], lines[1::2]):
            told.update(zip(names, map(int, values)))
    return told["RetransSegs"] + told["TCPWinProbe"]


@pytest.mark.smoke
def test_bodies_both_ways(make, visitor):
    sluice = make(rooms=[])
    before = sent_twice()
    echo(visitor, sluice, BODY)
    assert len(visitor(sluice).get("/big").content) == 8 << 20
    assert 1000 < counter(sluice, "segments_in") < 4 * len(BODY) / 1448
    assert counter(sluice, "out_of_window") <= sent_twice() - before


@pytest.mark.bypass("af_packet")  # net_tap of DPDK 22.11 takes 1,522 octets
def test_large_frames(on_link, visitor):
    sluice = on_link(mtu=9000)
    before = counter(sluice, "segments_in")
    assert visitor(sluice).client.post("/about", content=BODY).text == "shop:none\n"
    assert counter(sluice, "segments_in") - before < 2 * len(BODY) / 8900
    echo(visitor, sluice, BODY)


@pytest.mark.bypass("af_packet")
def test_segments_larger_than_frames_are_but_slow(make, visitor):
    """Who lets its kernel give us 64 kB at once gets through all the same, a time-out for each few
    segments."""
    sluice = make(rooms=[])
    command("ethtool", "-K", sluice.link.outside, "tx", "on", "tso", "on", "gso", "on", "gro", "on")
    echo(visitor, sluice, BODY[:40_000])


@pytest.mark.smoke
def test_two_instances_do_not_disturb_each_other(make):
    one, two = make(), make()
    for _ in range(2):
        with one.connect() as first, two.connect() as second:
            assert ask(first).startswith(b"HTTP/1.1 200 ")
            assert ask(second).startswith(b"HTTP/1.1 200 ")
            one.kill()
            assert ask(second).startswith(b"HTTP/1.1 200 ")
        one.start()
    assert two.read_log().count(": ready") == 1
    assert not [name for name in os.listdir("/var/run/dpdk") if is_of(name, one, two)
                ] if os.path.isdir("/var/run/dpdk") else True


def is_of(name, *sluices):
    return any(str(sluice.process.pid) in name for sluice in sluices)


@pytest.mark.smoke
@pytest.mark.bypass("af_packet", "af_xdp")
def test_flows_of_before_a_restart_are_reset_at_once(make):
    sluice = make()
    with sluice.connect() as sock:
        assert ask(sock).startswith(b"HTTP/1.1 200 ")
        sluice.kill()
        sluice.start()
        began = time.monotonic()
        with pytest.raises(ConnectionResetError):
            ask(sock)
        assert time.monotonic() - began < 3  # on a busy machine
    assert counter(sluice, "rst_sent") >= 1


@pytest.mark.bypass("af_packet", "af_xdp")
def test_a_crowd_of_before_a_restart_is_reset_at_once(make):
    """As many as there may be connections: the rate of RSTs is theirs."""
    sluice = make()
    crowd = [sluice.connect() for _ in range(400)]  # a source has a quarter of 2000
    assert ask(crowd[-1]).startswith(b"HTTP/1.1 200 ")
    sluice.kill()
    sluice.start()
    for sock in crowd:
        sock.settimeout(0.01)
        sock.sendall(b"GET / HTTP/1.1\r\n")
    began = time.monotonic()
    for sock in crowd:
        sock.settimeout(2)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
        sock.close()
    assert time.monotonic() - began < 2
    assert counter(sluice, "rst_limited") == 0


@pytest.mark.smoke
def test_a_drain_says_that_connections_close(make, origin):
    """What is under way is finished; nobody keeps a connection."""
    sluice = make()
    origin.gate.clear()
    with sluice.connect() as busy, sluice.connect() as idle:
        assert ask(idle).startswith(b"HTTP/1.1 200 ")
        busy.sendall(b"GET /about HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(lambda: origin.seen, 5)
        sluice.process.send_signal(signal.SIGTERM)
        idle.settimeout(5)
        assert idle.recv(1) == b""
        origin.gate.set()
        busy.settimeout(5)
        got = b""
        while piece := busy.recv(65536):
            got += piece
        assert got.startswith(b"HTTP/1.1 200 ") and b"\r\nconnection: close\r\n" in got.lower()
    assert sluice.process.wait(10) == 0


@pytest.mark.smoke
def test_a_drain_refuses_newcomers(make, origin):
    """The port is ours: who comes is refused at once, so that it goes elsewhere."""
    sluice = make()
    origin.gate.clear()
    with sluice.connect() as busy:
        busy.sendall(b"GET /about HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(lambda: origin.seen, 5)
        sluice.process.send_signal(signal.SIGTERM)
        wait_for(lambda: is_refused(sluice), 5, 0.05)
        assert counter(sluice, "syn_refused") >= 1
        origin.gate.set()
        busy.settimeout(5)
        assert busy.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert sluice.process.wait(10) == 0


def is_refused(sluice):
    try:
        sluice.connect().close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.smoke
def test_a_drain_does_not_wait_for_peers_who_never_end(make):
    sluice = make()
    with sluice.connect() as idle:
        assert ask(idle).startswith(b"HTTP/1.1 200 ")
        began = time.monotonic()
        assert sluice.stop() == 0
        assert time.monotonic() - began < 5  # of the 10 s that it may last
    assert "were cut" not in sluice.read_log()


@pytest.mark.smoke
@pytest.mark.bypass("af_packet", "tap")  # elsewhere that is the exception interface's matter
def test_a_port_without_a_listener(make):
    sluice = make()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((sluice.address, sluice.port ^ 1), timeout=5)
    assert ask(sluice.connect()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.smoke
def test_echo_requests_are_answered(make):
    sluice = make()
    run = subprocess.run(["ping", "-c", "3", "-i", "0.2", "-w", "5", sluice.address],
                         capture_output=True, text=True)
    assert " 0% packet loss" in run.stdout, run.stdout + run.stderr
    assert counter(sluice, "echo_answered") >= 3


@pytest.mark.smoke
@pytest.mark.bypass("af_xdp")
def test_what_is_not_for_us_reaches_the_kernel(make):
    """An ssh daemon on the card's address: the visitor's end goes to a network of its own, so that
    the address can be the kernel's here."""
    sluice = make()
    link, address = sluice.link, sluice.link.addresses[0][0]
    exception = next(name for _, name in socket.if_nameindex() if name.startswith("sluice"))
    with contextlib.closing(Namespace()) as away, contextlib.ExitStack() as stack:
        here = stack.enter_context(open("/proc/thread-self/ns/net", "rb"))
        command("ip", "link", "set", link.outside, "netns", away.path)
        stack.callback(take_back, link, away, f"/proc/{os.getpid()}/fd/{here.fileno()}")
        with away.entered():
            link.bring_up()
        command("ip", "address", "add", f"{address}/24", "dev", exception)
        command("ip", "link", "set", exception, "up")
        server = stack.enter_context(socket.create_server((address, 0)))
        server.settimeout(5)
        with away.entered():
            client = stack.enter_context(socket.create_connection(server.getsockname(), 5))
        peer, _ = server.accept()
        with peer:
            client.sendall(b"SSH-2.0-client\r\n")
            assert peer.recv(100) == b"SSH-2.0-client\r\n"
            peer.sendall(b"SSH-2.0-server\r\n")
            assert client.recv(100) == b"SSH-2.0-server\r\n"
        with away.entered(), sluice.connect() as visitor:
            assert ask(visitor).startswith(b"HTTP/1.1 200 ")
        assert counter(sluice, "excepted") > 0 and counter(sluice, "from_exception") > 0
        assert counter(sluice, "except_limited") == 0


def take_back(link, away, here):
    with away.entered():
        command("ip", "link", "set", link.outside, "netns", here)


@pytest.mark.smoke
def test_a_crowd_over_two_workers(make):
    """Frames are spread by the device, or by sluice; each flow stays where it began."""
    sluice = make(rooms=[], top={"workers": [0, 1]})
    failed = []

    def visit():
        for _ in range(3):
            with sluice.connect() as sock:
                for _ in range(3):
                    if not ask(sock).startswith(b"HTTP/1.1 200 "):
                        failed.append(sock)

    threads = [threading.Thread(target=visit) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed
    assert {worker["requests"] > 0 for worker in sluice.show("workers")} == {True}
    shown = counters(sluice)
    assert shown["worker", "busy_turns"] > 0 and shown["worker", "busy_cycles"] > 0
    assert all(counter(sluice, name) == 0 for name in ("device_missed", "device_no_buffer"))


def test_memory_and_ports_are_told_by_check(make):
    sluice = make()
    told = sluice.cli("check").stdout
    assert int(re.search(r"^an idle connection: (\d+) bytes$", told, re.M)[1]) <= 230
    assert "total" in told and json.loads(sluice.cli("show", "counters", "--json").stdout)
    assert sluice.link.device().split(",")[0] in sluice.read_log()


def test_an_idle_worker_leaves_its_core_to_others(make):
    """It polls from the first frame on, and rests when none has come for a while."""
    sluice = make(rooms=[])
    sluice.stop()
    sluice.config["dpdk"]["idle_sleep"] = 1000
    sluice.start()

    def used_s():
        stat = pathlib.Path(f"/proc/{sluice.process.pid}/stat").read_text()
        fields = stat.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before, began = used_s(), time.monotonic()
    time.sleep(2)
    assert (used_s() - before) / (time.monotonic() - began) < 0.25
    with socket.create_connection((sluice.address, sluice.port)) as visitor:
        assert b" 200 " in ask(visitor)
