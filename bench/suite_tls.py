"""tls: a full handshake on sluice against one on nginx, in CPU of the server.

One worker each, pinned to the same core, the load on another. The same certificate (ECDSA, P-256),
groups, ciphers and number of tickets, TLS 1.3 and 1.2; no session is resumed. Each connection is
connect, handshake, close, by `openssl s_time`. Pairs are interleaved, and medians of pairs are
reported.

With the sockets driver all meet on loopback. With `driver: dpdk` the load lives in a network
namespace of its own, from which a virtual link leads to a port of sluice's (af_packet) and another
one to nginx over the kernel. Our CPU is then the worker's own count of busy cycles, since a core
that polls is never idle by the kernel's account, and what the other threads use.
"""
import contextlib
import os
import pathlib
import re
import statistics
import subprocess

from suite_peers import pairs_of
from suite_polls import standing_still, tsc_hz
from world import Failure, HOST, accepts, children_of, cores, cpu_s, ending_with_us, folder, \
    free_port, go_first, process, shop, sluice, threads_of

TAKES = "takes about six minutes"
PAIRS = 11
LOADS = 4  # at once, so that the server has always something to do
COUNTED_S = 2
QUICK = {"PAIRS": 1, "COUNTED_S": 1}
VERSIONS = {"13": "-tls1_3", "12": "-tls1_2"}
CIPHERS = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"
NETWORKS = ("198.18.1", "198.18.2")  # for measurements (RFC 2544): sluice's and nginx's
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
  default_type application/json;
  client_body_temp_path {at}/t1; proxy_temp_path {at}/t2; fastcgi_temp_path {at}/t3;
  uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;
  ssl_certificate {at}/shop.pem;
  ssl_certificate_key {at}/shop.key;
  ssl_protocols TLSv1.2 TLSv1.3;
  ssl_ciphers {ciphers};
  ssl_prefer_server_ciphers on;
  ssl_ecdh_curve X25519:prime256v1;
  ssl_session_cache off;
  ssl_session_tickets on;
  ssl_conf_command NumTickets 1;
  server {{
    listen {port} ssl backlog=4096;
    location / {{ return 200 '{body}'; }}
  }}
}}
"""


def run():
    served, loading = cores()[-1], cores()[0]
    with folder() as at:
        make_certificate(at)
        with shop(at) as shop_port, nginx(at, served) as theirs:
            yield over_sockets(at, shop_port, served, OnLoopback(loading), theirs)
            with load_apart(at, loading) as load:
                yield over_ports(at, shop_port, served, load, theirs)


def make_certificate(at):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=shop",
                    "-out", at / "shop.pem", "-keyout", at / "shop.key"],
                   check=True, capture_output=True)


def appliance(at, shop_port, served, address, **top):
    port = free_port()
    listen = [{"address": f"{address}:{port}",
               "tls": [{"certificate": "shop.pem", "key": "shop.key"}]}]
    return port, sluice(at, shop_port, {}, 4096, goes_first=True, workers=[served], listen=listen,
                        tls_handshakes=1000000, **top)


def over_sockets(at, shop_port, served, load, theirs):
    port, starting = appliance(at, shop_port, served, HOST)
    with starting as one:
        def ours(option):
            with used_by([one.child.pid]) as used:
                count = load.run(port, option)
            return used() / count * 1e6

        return compare(ours, lambda option: nginx_us(load, theirs, option), "")


def over_ports(at, shop_port, served, load, theirs):
    """While one is measured the other stands still: a worker that polls has the core for itself."""
    port, starting = appliance(
        at, shop_port, served, load.servers[0], driver="dpdk",
        dpdk={"hugepages": "off",
              "ports": [{"device": f"net_af_packet0,iface={load.links[0]}",
                         "addresses": [f"{load.servers[0]}/24"]}]})
    with starting as one:
        def ours(option):
            before = busy_cycles(one)
            with used_by([one.child.pid], but="sluice-worker") as used:
                count = load.run(port, option)
            return ((busy_cycles(one) - before) / tsc_hz() + used()) / count * 1e6

        def nginx_alone(option):
            with standing_still(one.child):
                return nginx_us(load, theirs, option)

        return compare(ours, nginx_alone, "_dpdk")


def busy_cycles(one):
    return one.counters()["worker", "busy_cycles"]


def nginx_us(load, theirs, option):
    port, pid = theirs
    with used_by(children_of(pid)) as used:
        count = load.run(port, option, to_nginx=True)
    return used() / count * 1e6


@contextlib.contextmanager
def used_by(pids, but=None):
    """Gives out a function that says, afterwards, how many CPU seconds they have used."""
    def seconds():
        if not but:
            return cpu_s(pids)
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads_of(pids)
                   if (thread / "comm").read_text().strip() != but) / 1e9

    before, after = seconds(), []
    yield lambda: after[0] - before
    after.append(seconds())


def compare(ours, theirs, name):
    """Of each version; and the lesser ratio of both."""
    figures, ratios = {}, []
    for version, option in VERSIONS.items():
        pairs = pairs_of(lambda measure: measure(option), ours, theirs, PAIRS)
        ratios.append(statistics.median(their / our for our, their in pairs))
        figures[f"cpu_ratio_handshake{name}_{version}"] = ratios[-1]
        figures[f"cpu_us_handshake{name}_{version}"] = statistics.median(
            our for our, _ in pairs)
        figures[f"cpu_us_handshake_nginx{name}_{version}"] = statistics.median(
            their for _, their in pairs)
    figures[f"cpu_ratio_handshake{name}"] = min(ratios)
    return figures


class OnLoopback:
    """Where the load is, and where it finds both servers."""

    servers = (HOST, HOST)
    inside = ()  # what a command begins with, to be run there

    def __init__(self, core):
        self.core = core

    def run(self, port, option, to_nginx=False):
        """How many connections were made in COUNTED_S."""
        command = ending_with_us([
            *self.inside, "taskset", "-c", self.core, "openssl", "s_time", "-connect",
            f"{self.servers[to_nginx]}:{port}", "-new", option, "-time", COUNTED_S])
        loads = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, preexec_fn=go_first) for _ in range(LOADS)]
        return sum(connections_of(load) for load in loads)


class Apart(OnLoopback):
    """In the network namespace of a process, with a link to each server."""

    servers = tuple(f"{network}.2" for network in NETWORKS)

    def __init__(self, core, pid):
        super().__init__(core)
        self.inside = ("nsenter", "--target", str(pid), "--net", "--")
        self.links = [f"slb{os.getpid()}{end}" for end in "pn"]
        for i, link in enumerate(self.links):
            said("ip", "link", "add", link, "type", "veth", "peer", "name", f"eth{i}",
                 "netns", pid)
            said("ip", "link", "set", link, "up")
            said(*self.inside, "ip", "address", "add", f"{NETWORKS[i]}.1/24", "dev", f"eth{i}")
            said(*self.inside, "ip", "link", "set", f"eth{i}", "up")
        # A port gets frames as from a wire, summed and of the wire's size; nginx's link keeps what
        # the kernel saves itself with itself.
        said(*self.inside, "ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off",
             "gro", "off")
        pathlib.Path(f"/proc/sys/net/ipv6/conf/{self.links[0]}/disable_ipv6").write_text("1")
        said("ip", "address", "add", f"{self.servers[1]}/24", "dev", self.links[1])
        for name, value in (("tcp_tw_reuse", "1"), ("ip_local_port_range", "1024 65535")):
            said(*self.inside, "sysctl", "-qw", f"net.ipv4.{name}={value}")


def said(*words):
    run = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=20)
    if run.returncode != 0:
        raise Failure(f"{' '.join(map(str, words))}: {run.stdout}{run.stderr}")


@contextlib.contextmanager
def load_apart(at, core):
    """The namespace, and with it the links, is gone with the process that it is of."""
    log = at / "namespace.log"
    command = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep 86400"]
    with process(command, log, lambda: "up" in log.read_text()) as holder:
        yield Apart(core, holder.pid)


def connections_of(load):
    """What s_time says: `N connections in 2 real seconds`."""
    text = load.communicate(timeout=60)[0]
    found = re.search(r"(\d+) connections in \d+ real seconds", text)
    if load.returncode != 0 or not found or int(found[1]) == 0:
        raise Failure(f"openssl s_time: {text[-500:]}")
    return int(found[1])


@contextlib.contextmanager
def nginx(at, core):
    """nginx with that certificate. Gives out its port and the master's pid."""
    port, path = free_port(), at / "nginx.conf"
    path.write_text(NGINX.format(at=at, mask=1 << core, port=port, ciphers=CIPHERS,
                                 body="x" * 32))
    with process(["nginx", "-c", path, "-e", at / "nginx-error.log"], at / "nginx.log",
                 lambda: accepts(port), goes_first=True) as child:
        yield port, child.pid
