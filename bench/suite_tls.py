"""tls: a full handshake on sluice against one on nginx, in CPU of the server.

One worker each, pinned to the same core, the load on another. The same certificate (ECDSA, P-256),
groups, ciphers and number of tickets, TLS 1.3 and 1.2; no session is resumed. Each connection is
connect, handshake, close, by `openssl s_time`. Pairs are interleaved, and medians of pairs are
reported.
"""
import contextlib
import re
import statistics
import subprocess

from suite_peers import pairs_of
from world import Failure, HOST, accepts, children_of, cores, cpu_s, folder, free_port, go_first, \
    process, shop, sluice

TAKES = "takes about three minutes"
LOADS = 4  # at once, so that the server has always something to do
COUNTED_S = 2
VERSIONS = {"13": "-tls1_3", "12": "-tls1_2"}
CIPHERS = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"
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
    listen {host}:{port} ssl backlog=4096;
    location / {{ return 200 '{body}'; }}
  }}
}}
"""


def run():
    served, loading = cores()[-1], cores()[0]
    with folder() as at:
        make_certificate(at)
        port = free_port()
        listen = [{"address": f"{HOST}:{port}",
                   "tls": [{"certificate": "shop.pem", "key": "shop.key"}]}]
        with shop(at) as shop_port, \
                sluice(at, shop_port, {}, 4096, goes_first=True, workers=[served], listen=listen,
                       tls_handshakes=1000000) as appliance, \
                nginx(at, served) as (nginx_port, nginx_pid):
            ours = (port, [appliance.child.pid])
            theirs = (nginx_port, children_of(nginx_pid))
            figures = {}
            for name, option in VERSIONS.items():
                figures.update(compare(name, option, loading, ours, theirs))
    figures["cpu_ratio_handshake"] = min(
        figures[f"cpu_ratio_handshake_{name}"] for name in VERSIONS)
    yield figures


def make_certificate(at):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=shop",
                    "-out", at / "shop.pem", "-keyout", at / "shop.key"],
                   check=True, capture_output=True)


def compare(name, option, core, ours, theirs):
    pairs = pairs_of(lambda server: handshake_us(option, core, *server), ours, theirs)
    return {
        f"cpu_ratio_handshake_{name}": statistics.median(their / our for our, their in pairs),
        f"cpu_us_handshake_{name}": statistics.median(our for our, _ in pairs),
        f"cpu_us_handshake_nginx_{name}": statistics.median(their for _, their in pairs),
    }


def handshake_us(option, core, port, pids):
    """CPU of the server for each connection."""
    command = ["taskset", "-c", core, "openssl", "s_time", "-connect", f"{HOST}:{port}", "-new",
               option, "-time", COUNTED_S]
    before = cpu_s(pids)
    loads = [subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, preexec_fn=go_first)
             for _ in range(LOADS)]
    count = sum(connections_of(load) for load in loads)
    return (cpu_s(pids) - before) / count * 1e6


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
    path.write_text(NGINX.format(at=at, host=HOST, port=port, mask=1 << core, ciphers=CIPHERS,
                                 body="x" * 32))
    with process(["nginx", "-c", path, "-e", at / "nginx-error.log"], at / "nginx.log",
                 lambda: accepts(port), goes_first=True) as child:
        yield port, child.pid
