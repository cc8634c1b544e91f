"""Where visitors meet an appliance: loopback, or a link of its own for `driver: dpdk`.

SLUICE_E2E_DEVICE says which: `sockets` (the default), or a device that a virtual link can carry:
`af_packet`, `af_xdp`, `tap`. Every process of tests lives in a network namespace of its own,
which is gone with the last process in it. With a device each appliance there gets a link with the
kernel's TCP at the other end. SLUICE_E2E_FAMILY=6 makes visitors come over IPv6, SLUICE_E2E_VLAN=N
over a tagged network.
"""
import contextlib
import ctypes
import itertools
import os
import pathlib
import socket
import subprocess
import sys

DEVICE = os.environ.get("SLUICE_E2E_DEVICE", "sockets")
FAMILY = os.environ.get("SLUICE_E2E_FAMILY", "4")
VLAN = int(os.environ.get("SLUICE_E2E_VLAN", "0"))
CLONE_NEWNET = 0x40000000
SOURCES = 8  # addresses that visitors may come from

# Where visitors may come from.
VISITORS = ["127.0.0.0/8", "10.77.0.0/16", "fd00::/16"]
taken = set()  # numbers of links
# Appliances share cores with each other and with their visitors, so the idle ones rest.
IDLE_SLEEP_US = 100
CORES = sorted(os.sched_getaffinity(0), reverse=True)
CORE = CORES[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % len(CORES)]


def is_bypass():
    return DEVICE != "sockets"


def describe():
    return DEVICE + (", IPv6" if FAMILY == "6" else "") + (f", VLAN {VLAN}" if VLAN else "")


def command(*words):
    run = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=20)
    assert run.returncode == 0, f"{words}: {run.stdout}{run.stderr}"
    return run.stdout


def system_call(name, *arguments):
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), name)


def enter():
    """Leave the machine's network, before anything is started."""
    system_call("unshare", CLONE_NEWNET)
    command("ip", "link", "set", "lo", "up")


class Namespace:
    """A network apart. No process and no name holds it, only this object: it goes when closed."""

    def __init__(self):
        with open("/proc/thread-self/ns/net", "rb") as ours:
            enter()
            self.file = open("/proc/thread-self/ns/net", "rb")
            system_call("setns", ours.fileno(), CLONE_NEWNET)
        self.path = f"/proc/{os.getpid()}/fd/{self.file.fileno()}"  # as ip(8) wants it

    @contextlib.contextmanager
    def entered(self):
        """This thread is in it, and whatever it starts; sockets made here stay here."""
        with open("/proc/thread-self/ns/net", "rb") as ours:
            system_call("setns", self.file.fileno(), CLONE_NEWNET)
            try:
                yield
            finally:
                system_call("setns", ours.fileno(), CLONE_NEWNET)

    def close(self):
        self.file.close()


def as_a_wire(interface):
    """Else the kernel leaves sums to a device that is none, and sends segments of 64 kB."""
    command("ethtool", "-K", interface, "tx", "off", "tso", "off", "gso", "off", "gro", "off")


def tagging(inside, outside):
    """The process of tagging.py, which ends with us."""
    words = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-B",
             pathlib.Path(__file__).with_name("tagging.py"), inside, outside, str(VLAN)]
    switch = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert switch.stdout.readline() == "ready\n"
    return switch


class Loopback:
    """Nothing to set up. `addresses` are the appliance's, each with whom it hears from there."""

    address = peer = host = "127.0.0.1"
    name = "localhost"
    family = socket.AF_INET
    addresses = [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("127.0.0.3", "127.0.0.1")]

    def source(self, number):
        """Addresses of visitors; the first is `peer`."""
        return f"127.0.0.{number}"

    def config(self):
        return {}

    def plug(self):
        pass

    def unplug(self):
        pass


class Link:
    """A /24 with the appliance at .2 and the kernel at .1; IPv6 likewise, fd00:N::/64."""

    def __init__(self, mtu=1500, device=DEVICE):
        self.kind, self.switch = device, None
        self.number, self.mtu = next(n for n in itertools.count(1) if n not in taken), mtu
        taken.add(self.number)
        self.inside, self.outside = f"in{self.number}", f"out{self.number}"
        self.kernel = f"{self.outside}.{VLAN}" if VLAN else self.outside
        four, six = f"10.77.{self.number}", f"fd00:{self.number:x}:"
        self.addresses = [(f"{four}.2", f"{four}.1"), (f"{six}:2", f"{six}:1"),
                          (f"{four}.3", f"{four}.1")]
        self.address, self.peer = self.addresses[FAMILY == "6"]
        self.host = self.name = f"[{self.address}]" if FAMILY == "6" else self.address
        self.family = socket.AF_INET6 if FAMILY == "6" else socket.AF_INET
        if device != "tap":  # that makes its interface itself
            self.make_pair()

    def source(self, number):
        if number == 1:
            return self.peer
        if FAMILY == "6":  # another customer's: a source is a /56
            return f"fd00:{self.number:x}:{number}00::1"
        return f"10.77.{self.number}.1{number}"

    def make_pair(self):
        command("ip", "link", "add", self.outside, "mtu", self.mtu, "type", "veth",
                "peer", "name", self.inside, "mtu", self.mtu)
        pathlib.Path(f"/proc/sys/net/ipv6/conf/{self.inside}/disable_ipv6").write_text("1")
        command("ip", "link", "set", self.inside, "up")
        as_a_wire(self.outside)
        self.bring_up()

    def bring_up(self):
        """The kernel's end: up, tagged if it shall be, with all addresses of visitors."""
        command("ip", "link", "set", self.outside, "up")
        if VLAN:
            self.switch = tagging(self.kernel, self.outside)
            command("ip", "link", "set", self.kernel, "mtu", self.mtu, "up")
        four, six = self.addresses[0][1], self.addresses[1][1]
        command("ip", "-6", "address", "add", f"{six}/64", "dev", self.kernel, "nodad")
        command("ip", "address", "add", f"{four}/24", "dev", self.kernel)
        for number in range(2, SOURCES + 1):
            # Not preferred: who does not ask for another source comes from the first.
            command("ip", "address", "add", f"{self.source(number)}/{self.bits()}", "dev",
                    self.kernel, *(["nodad", "preferred_lft", 0] if FAMILY == "6" else []))

    def bits(self):
        return 128 if FAMILY == "6" else 24

    def device(self):
        if self.kind == "tap":
            return f"net_tap{self.number},iface={self.outside}"
        return f"net_{self.kind}{self.number},iface={self.inside}"

    def config(self):
        port = {"device": self.device(), "vlan": VLAN,
                "addresses": [f"{ours}/{64 if ':' in ours else 24}" for ours, _ in self.addresses]}
        if self.mtu != 1500:
            port["mtu"] = self.mtu
        return {"driver": "dpdk", "workers": [CORE],
                "dpdk": {"hugepages": "off", "idle_sleep": IDLE_SLEEP_US, "ports": [port]}}

    def plug(self):
        """The appliance runs: a device of its own making gets the kernel's addresses now."""
        if self.kind == "tap":
            self.bring_up()

    def unplug(self):
        if self.switch:
            self.switch.kill()
            self.switch.communicate()
        if self.kind != "tap":
            command("ip", "link", "delete", self.outside)
        taken.discard(self.number)


def certified():
    """Names for a certificate that is good for every appliance of a test."""
    links = ",".join(f"IP:10.77.{n}.2,IP:fd00:{n:x}::2" for n in range(1, 5))
    return "DNS:localhost,IP:127.0.0.1" + (f",{links}" if is_bypass() else "")


def link(**keys):
    """What a new appliance is reached by."""
    return Link(**keys) if is_bypass() else Loopback()
