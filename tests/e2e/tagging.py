#!/usr/bin/python3
"""A switch with two ports: INSIDE, a new tap interface, untagged; OUTSIDE, an interface that is
there, tagged with VLAN. It stands in for the kernel's VLAN devices, which some kernels lack.

    tagging.py INSIDE OUTSIDE VLAN    says `ready`, and runs until it is ended
"""
import contextlib
import fcntl
import os
import selectors
import socket
import struct
import sys

TUNSETIFF, TAP, NO_HEADER = 0x400454CA, 2, 0x1000
SOL_PACKET, AUXDATA, IGNORE_OUTGOING = 263, 8, 23
EVERY_PROTOCOL = socket.htons(3)
FRAME_MAX = 1 << 16
TAG_AT = 12  # behind the addresses
BURST = 64


def open_tap(name):
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), TAP | NO_HEADER))
    return tap


def open_wire(name):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, EVERY_PROTOCOL)
    wire.setsockopt(SOL_PACKET, AUXDATA, 1)
    wire.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    wire.bind((name, 0))
    return wire


def vlan_of(ancillary):
    """The kernel takes a tag off and tells of it (struct tpacket_auxdata); None if there was
    none."""
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_PACKET, AUXDATA):
            status, tag = struct.unpack_from("=I12xH", data)
            return tag & 0xFFF if status & 0x10 else None
    return None


def out(tap, wire, tag):
    for _ in range(BURST):
        frame = os.read(tap, FRAME_MAX)
        wire.send(frame[:TAG_AT] + tag + frame[TAG_AT:])


def into(tap, wire, vlan):
    for _ in range(BURST):
        frame, ancillary, _, _ = wire.recvmsg(FRAME_MAX, 256)
        if vlan_of(ancillary) == vlan:
            os.write(tap, frame)


def main():
    inside, outside, vlan = sys.argv[1], sys.argv[2], int(sys.argv[3])
    tap, wire = open_tap(inside), open_wire(outside)
    tag = struct.pack(">HH", 0x8100, vlan)
    ports = selectors.DefaultSelector()
    ports.register(tap, selectors.EVENT_READ, lambda: out(tap, wire, tag))
    ports.register(wire, selectors.EVENT_READ, lambda: into(tap, wire, vlan))
    print("ready", flush=True)
    while True:
        for port, _ in ports.select():
            with contextlib.suppress(OSError):  # empty, full, or not up yet: as on any wire
                port.data()


if __name__ == "__main__":
    main()
