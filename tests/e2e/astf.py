"""A stand-in for TRex's trex.astf.api: what bench/profiles/trex uses of it, and someone to play it.

It takes what the real one takes, refuses what that refuses, and a program is a list of commands.
play() follows one against a real server, on a socket of the kernel's.
"""
import contextlib
import importlib
import ipaddress
import random
import socket
import sys
import time
import types

VARIABLES_MAX = 2  # as many as a flow has


class ASTFProgram:
    def __init__(self):
        self.commands, self.labels, self.variables = [], {}, set()
        self.received = 0  # watermarks count from the beginning of the program

    def send(self, buf):
        self.commands.append(("send", buf.encode("ascii")))

    def recv(self, bytes, clear=False):
        self.received += bytes
        self.commands.append(("recv", self.received, clear))

    def delay_rand(self, min_usec, max_usec):
        assert isinstance(min_usec, int) and min_usec <= max_usec
        self.commands.append(("delay", min_usec, max_usec))

    def set_var(self, var_id, val):
        assert 0 <= val < 1 << 32
        self.variables.add(var_id)
        assert len(self.variables) <= VARIABLES_MAX
        self.commands.append(("set", var_id, val))

    def set_label(self, label):
        assert label not in self.labels
        self.labels[label] = len(self.commands)

    def jmp_nz(self, var_id, label):
        assert var_id in self.variables and label in self.labels
        self.commands.append(("jump", var_id, label))

    def wait_for_peer_close(self):
        self.commands.append(("peer close",))


class ASTFIPGenGlobal:
    def __init__(self, ip_offset="1.0.0.0"):
        ipaddress.IPv4Address(ip_offset)


class ASTFIPGenDist:
    def __init__(self, ip_range, distribution="seq"):
        first, last = map(ipaddress.IPv4Address, ip_range)
        assert first <= last and distribution in ("seq", "rand")
        self.range = (str(first), str(last))


class ASTFIPGen:
    def __init__(self, dist_client, dist_server, glob):
        assert isinstance(glob, ASTFIPGenGlobal)
        self.dist_client, self.dist_server = dist_client, dist_server


class ASTFAssociationRule:
    def __init__(self, port=80):
        assert 0 < port < 65536
        self.port = port


class ASTFTCPClientTemplate:
    def __init__(self, ip_gen, program=None, port=80, cps=1, limit=None):
        assert isinstance(ip_gen, ASTFIPGen) and isinstance(program, ASTFProgram)
        assert limit is None or isinstance(limit, int)
        assert limit != 0  # would be no limit at all
        self.ip_gen, self.program, self.port, self.cps, self.limit = \
            ip_gen, program, port, cps, limit


class ASTFTCPServerTemplate:
    def __init__(self, program=None, assoc=None):
        assert isinstance(program, ASTFProgram) and program.commands
        self.assoc = assoc


class ASTFTemplate:
    def __init__(self, client_template=None, server_template=None):
        assert isinstance(client_template, ASTFTCPClientTemplate)
        assert isinstance(server_template, ASTFTCPServerTemplate)
        self.client, self.server = client_template, server_template


class ASTFGlobalInfo:
    def __init__(self):
        self.tcp = types.SimpleNamespace()


class ASTFProfile:
    def __init__(self, default_ip_gen, default_c_glob_info=None, templates=None):
        assert isinstance(default_ip_gen, ASTFIPGen) and templates
        for seconds in vars(default_c_glob_info.tcp).values():
            assert 2 <= seconds <= 253
        ports = [template.server.assoc.port for template in templates]
        assert len(ports) == len(set(ports))
        self.templates = templates


def load(path, *tunables):
    """The profile of that file, as the console loads it: `start -f PATH -t TUNABLES`."""
    api = types.ModuleType("trex.astf.api")
    vars(api).update({name: value for name, value in globals().items() if name.startswith("ASTF")})
    sys.modules.update({"trex": types.ModuleType("trex"), api.__name__: api,
                        "trex.astf": types.ModuleType("trex.astf")})
    sys.path.insert(0, str(path.parent))
    try:
        return importlib.reload(importlib.import_module(path.stem)).register().get_profile(
            tunables=[str(word) for word in tunables])
    finally:
        sys.path.remove(str(path.parent))


def play(program, address, turns=0, us_per_s=1_000_000, lands_after=0):
    """Follow the program until its end, or the end of that turn of its loop; what it received.

    us_per_s: more than there are, where a delay should be shorter; lands_after: how many commands
    behind its label a jump ends.
    """
    variables, counted, got, at = {}, 0, b"", 0
    with contextlib.closing(socket.create_connection(address, timeout=10)) as sock:
        while at < len(program.commands):
            kind, *operands = program.commands[at]
            at += 1
            if kind == "send":
                sock.sendall(operands[0])
            elif kind == "recv":
                watermark, is_cleared = operands
                while counted < watermark:
                    piece = sock.recv(65536)
                    assert piece, "closed before it answered"
                    got, counted = got + piece, counted + len(piece)
                counted = 0 if is_cleared else counted
            elif kind == "delay":
                time.sleep(random.uniform(*operands) / us_per_s)
                sock.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    while piece := sock.recv(65536):
                        got, counted = got + piece, counted + len(piece)
                sock.settimeout(10)
            elif kind == "set":
                variables[operands[0]] = operands[1]
            elif kind == "jump":
                variables[operands[0]] -= 1
                if (turns := turns - 1) == 0:
                    break
                if variables[operands[0]] > 0:
                    at = program.labels[operands[1]] + lands_after
            elif kind == "peer close":
                while piece := sock.recv(65536):
                    got += piece
    return got
