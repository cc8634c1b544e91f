"""Where visitors meet an appliance: loopback, or a link of its own for `driver: dpdk`.

SLUICE_E2E_DEVICE says which: `sockets` (the default), or a device that a virtual link can carry:
`af_packet`, `af_xdp`, `tap`. With a device the whole run lives in a network namespace of its own,
which is gone with its last process; each appliance gets a link with the kernel's TCP at the other
end.
"""
import ctypes
import itertools
import os
import subprocess

DEVICE = os.environ.get("SLUICE_E2E_DEVICE", "sockets")
CLONE_NEWNET = 0x40000000

numbers = itertools.count(1)


def is_bypass():
    return DEVICE != "sockets"


def command(*words):
    run = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=20)
    assert run.returncode == 0, f"{words}: {run.stdout}{run.stderr}"


def enter():
    """Leave the machine's network, before anything is started."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    command("ip", "link", "set", "lo", "up")


class Loopback:
    """Nothing to set up."""

    address, peer = "127.0.0.1", "127.0.0.1"

    def config(self):
        return {}

    def plug(self):
        pass

    def unplug(self):
        pass


class Link:
    """A /24 with the appliance at .2 and the kernel at .1; IPv6 likewise, fd00:N::/64."""

    def __init__(self):
        self.number = next(numbers)
        self.address, self.peer = f"10.77.{self.number}.2", f"10.77.{self.number}.1"
        self.address6, self.peer6 = f"fd00:{self.number:x}::2", f"fd00:{self.number:x}::1"
        self.inside, self.outside = f"in{self.number}", f"out{self.number}"
        if DEVICE != "tap":  # that makes its interface itself
            self.make_pair()

    def make_pair(self):
        command("ip", "link", "add", self.outside, "type", "veth", "peer", "name", self.inside)
        for interface in (self.outside, self.inside):
            command("ip", "link", "set", interface, "up")
        # Else the kernel leaves sums to a device that is none, and sends segments of 64 kB.
        command("ethtool", "-K", self.outside, "tx", "off", "tso", "off", "gso", "off")
        self.give_addresses()

    def give_addresses(self):
        command("ip", "address", "add", f"{self.peer}/24", "dev", self.outside)
        command("ip", "-6", "address", "add", f"{self.peer6}/64", "dev", self.outside, "nodad")

    def device(self):
        if DEVICE == "tap":
            return f"net_tap{self.number},iface={self.outside}"
        return f"net_{DEVICE}{self.number},iface={self.inside}"

    def config(self):
        port = {"device": self.device(),
                "addresses": [f"{self.address}/24", f"{self.address6}/64"]}
        return {"driver": "dpdk", "workers": [max(os.sched_getaffinity(0))],
                "dpdk": {"hugepages": "off", "ports": [port]}}

    def plug(self):
        """The appliance runs: a device of its own making gets the kernel's addresses now."""
        if DEVICE == "tap":
            command("ip", "link", "set", self.outside, "up")
            self.give_addresses()

    def unplug(self):
        if DEVICE != "tap":
            command("ip", "link", "delete", self.outside)


def link():
    """What a new appliance is reached by."""
    return Link() if is_bypass() else Loopback()
