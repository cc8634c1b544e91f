"""A rack: appliances of one cluster, each in a network namespace of its own, and what they share.

    hub   Redis, its replica and sentinels, the shop, the crowd      10.66.0.1 on its loopback
     ├── 10.66.1.1 ── 10.66.1.2  a1
     ├── 10.66.2.1 ── 10.66.2.2  a2      ...

A namespace is held by a process that sleeps; it goes with its last process, all of which are ended
by pid when the rack is left, or by the kernel if we are killed.
"""
import contextlib
import json
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import time

from world import BUILD, Failure, START_S, STOP_S, ending_with_us, process

HUB = "10.66.0.1"
PORT = 8080
SHOP_PORT = 9000
PRIMARY_PORT, REPLICA_PORT = 6379, 6380
SENTINEL_PORTS = (26379, 26380, 26381)
STORE_PORTS = (PRIMARY_PORT, REPLICA_PORT, *SENTINEL_PORTS)
DOWN_AFTER_MS = 2000  # sentinels take a primary for dead
ROOM = "derby"
SITE = "derby.example"


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=20)
    if done.returncode != 0:
        raise Failure(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def until(what, seconds, otherwise):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise Failure(otherwise)
        time.sleep(0.02)


class Namespace:
    def __init__(self, holder):
        self.pid = holder.pid
        run(self.inside("ip", "link", "set", "lo", "up"))

    def inside(self, *command):
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--", *command]

    def run(self, *command):
        return run(self.inside(*command))


@contextlib.contextmanager
def namespace(at, name):
    ours = os.readlink("/proc/self/ns/net")
    log = at / f"{name}.namespace"
    with contextlib.ExitStack() as stack:
        holder = []

        def is_apart():
            link = pathlib.Path(f"/proc/{holder[0].pid}/ns/net") if holder else None
            return link and os.readlink(link) != ours

        holder.append(stack.enter_context(
            process(["unshare", "--net", "sleep", "infinity"], log, lambda: True)))
        until(is_apart, START_S, "no network namespace can be made")
        yield Namespace(holder[0])


class Appliance:
    """One of the rack; it can be killed and started again on the same state."""

    def __init__(self, at, number, net, origin_port, room, connections, store):
        self.number, self.name, self.net = number, f"a{number}", net
        self.address = f"10.66.{number}.2"
        self.path = at / self.name
        self.path.mkdir()
        self.path.chmod(0o755)
        self.log = self.path / "log"
        self.child = None
        config = {
            "listen": [{"address": f"{self.address}:{PORT}"}],
            "state": str(self.path / "state"),
            "user": "root",
            "connections": connections,
            "connections_per_source": connections,
            "origin_connections": 1000,
            "store": store,
            "cluster": {"appliance": self.name, "key_file": str(at / "cluster.key")},
            "sites": [{"name": "shop", "hosts": [SITE],
                       "origin": {"servers": [f"{HUB}:{origin_port}"]},
                       "rooms": [dict({"name": ROOM, "path": f"/{ROOM}"}, **room)]}],
        }
        (self.path / "sluice.yaml").write_text(json.dumps(config))  # JSON is YAML

    def start(self):
        command = self.net.inside(BUILD / "sluice", "run", "-c", self.path / "sluice.yaml")
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen(ending_with_us(command, "KILL"),
                                          stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def await_ready(self):
        def is_ready():
            if self.child.poll() is not None:
                raise Failure(f"{self.name} did not start:\n{self.log.read_text()[-2000:]}")
            return ": ready" in self.log.read_text(errors="replace")
        until(is_ready, START_S, f"{self.name} is not ready:\n{self.log.read_text()[-2000:]}")

    def kill(self):
        self.child.kill()
        self.child.wait()

    def end(self):
        if self.child and self.child.poll() is None:
            self.child.send_signal(signal.SIGCONT)
            self.child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(STOP_S)
            self.child.kill()
            self.child.wait()

    def show(self, *what, seconds=5):
        """As `sluice show`, without a process for it; None: it does not answer."""
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as sock:
            sock.settimeout(seconds)
            try:
                sock.connect(str(self.path / "state/admin.socket"))
                sock.sendall(json.dumps({"command": "show", "arguments": what}).encode() + b"\n")
                return json.loads(sock.makefile("rb").readline())["data"]
            except (OSError, ValueError, KeyError):
                return None

    def cut_off(self, rule):
        """Packets to and from the store meet this rule of nftables until mend()."""
        ports = ", ".join(str(port) for port in STORE_PORTS)
        self.net.run("nft", "add table inet cut; "
                     "add chain inet cut in {type filter hook input priority 0;}; "
                     "add chain inet cut out {type filter hook output priority 0;}; "
                     f"add rule inet cut in tcp sport {{{ports}}} {rule}; "
                     f"add rule inet cut out tcp dport {{{ports}}} {rule}")

    def mend(self):
        self.net.run("nft", "delete table inet cut")


class Redis:
    """A primary, a replica and three sentinels of the hub."""

    def __init__(self, at, hub):
        self.at, self.hub, self.children = at, hub, {}

    def start_server(self, port, *options):
        folder = self.at / f"redis-{port}"
        folder.mkdir(exist_ok=True)
        command = self.hub.inside("redis-server", "--port", port, "--bind", HUB, "--dir", folder,
                                  "--appendonly", "yes", "--appendfsync", "everysec",
                                  "--save", "", "--maxmemory-policy", "noeviction",
                                  "--protected-mode", "no", "--repl-diskless-sync-delay", 0,
                                  *options)
        self.start(port, command)

    def start_sentinel(self, port):
        path = self.at / f"sentinel-{port}.conf"
        path.write_text(f"port {port}\nbind {HUB}\nprotected-mode no\ndir {self.at}\n"
                        f"sentinel monitor sluice {HUB} {PRIMARY_PORT} 2\n"
                        f"sentinel down-after-milliseconds sluice {DOWN_AFTER_MS}\n"
                        "sentinel failover-timeout sluice 5000\n")
        self.start(port, self.hub.inside("redis-sentinel", path))

    def start(self, port, command):
        with open(self.at / f"redis-{port}.log", "ab") as log:
            self.children[port] = subprocess.Popen(ending_with_us(command, "KILL"),
                                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ask(self, port, *words):
        done = subprocess.run([str(word) for word in self.hub.inside(
            "redis-cli", "-h", HUB, "-p", port, *words)], capture_output=True, text=True,
            timeout=20)
        return done.stdout

    def start_all(self):
        self.start_server(PRIMARY_PORT)
        self.start_server(REPLICA_PORT, "--replicaof", f"{HUB} {PRIMARY_PORT}")
        for port in (PRIMARY_PORT, REPLICA_PORT):
            until(lambda port=port: "PONG" in self.ask(port, "ping"), START_S, "no Redis")
        until(lambda: "master_link_status:up" in self.ask(REPLICA_PORT, "info", "replication"),
              START_S, "the replica does not follow")
        for port in SENTINEL_PORTS:
            self.start_sentinel(port)
        for port in SENTINEL_PORTS:
            until(lambda port=port: "slaves=1,sentinels=3" in self.ask(port, "info", "sentinel"),
                  START_S, "the sentinels do not find each other")

    def primary(self):
        address = self.ask(SENTINEL_PORTS[0], "sentinel", "get-master-addr-by-name", "sluice")
        return int(address.split()[1])

    def kill(self, port):
        self.children[port].kill()
        self.children[port].wait()

    def end(self):
        for child in self.children.values():
            child.kill()
        for child in self.children.values():
            child.wait()


def connect(hub, number, net):
    run(hub.inside("ip", "link", "add", f"a{number}", "type", "veth", "peer", "name", "eth0",
                   "netns", net.pid))
    hub.run("ip", "address", "add", f"10.66.{number}.1/24", "dev", f"a{number}")
    hub.run("ip", "link", "set", f"a{number}", "up")
    net.run("ip", "address", "add", f"10.66.{number}.2/24", "dev", "eth0")
    net.run("ip", "link", "set", "eth0", "up")
    net.run("ip", "route", "add", "default", "via", f"10.66.{number}.1")


class Rack:
    def __init__(self, at, hub, redis, appliances):
        self.at, self.hub, self.redis, self.appliances = at, hub, redis, appliances

    def cluster(self, *others_than):
        """How the cluster stands, as any appliance but these says."""
        for appliance in self.appliances:
            shown = appliance not in others_than and appliance.show("cluster", seconds=0.5)
            if shown:
                return shown
        return None

    def conductor(self, *others_than):
        """The appliance that is it; None: nobody is, or nobody says."""
        shown = self.cluster(*others_than)
        name = shown and shown.get("conductor")
        return next((one for one in self.appliances if one.name == name), None)


@contextlib.contextmanager
def rack(at, count, room, connections, session_s):
    """`count` appliances with a line for all, the store by Sentinel, and the shop."""
    (at / "cluster.key").write_text(secrets.token_hex(32) + "\n")
    (at / "cluster.key").chmod(0o600)
    sentinels = ",".join(f"{HUB}:{port}" for port in SENTINEL_PORTS)
    with contextlib.ExitStack() as stack:
        hub = stack.enter_context(namespace(at, "hub"))
        hub.run("ip", "address", "add", f"{HUB}/32", "dev", "lo")
        redis = Redis(at, hub)
        stack.callback(redis.end)
        redis.start_all()
        shop = hub.inside(BUILD / "config/demo/shop", "--address", "0.0.0.0", "--port", SHOP_PORT,
                          "--session", session_s)
        stack.enter_context(process(shop, at / "shop.log",
                                    lambda: "shop on" in (at / "shop.log").read_text()))
        appliances = []
        for number in range(1, count + 1):
            net = stack.enter_context(namespace(at, f"a{number}"))
            connect(hub, number, net)
            appliances.append(Appliance(at, number, net, SHOP_PORT, room, connections,
                                        f"sentinel://{sentinels}/sluice"))
            stack.callback(appliances[-1].end)
        for appliance in appliances:
            appliance.start()
        for appliance in appliances:
            appliance.await_ready()
        yield Rack(at, hub, redis, appliances)
