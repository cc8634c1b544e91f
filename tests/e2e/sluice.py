"""The real binary, started with a configuration and an origin of our own.

Visitors meet it over loopback, or over a link of its own (network.py); the origin is always on
loopback.

Everything a test starts it ends: processes by pid, files with its temporary folder.
"""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import network

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("SLUICE_BINARY", str(ROOT / "build" / "sluice"))
START_S = 60  # that a busy machine may take

BROWSER = {
    "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "Accept-Language": "en",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Site": "none",
}
JSON = {"Accept": "application/json"}


def free_port():
    with contextlib.closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def wait_for(what, seconds, step=0.02, otherwise=str):
    """Call `what` until it says something true; fail after that many seconds."""
    until = time.monotonic() + seconds
    while True:
        result = what()
        if result:
            return result
        assert time.monotonic() < until, f"not within {seconds} s: {what}\n{otherwise()}"
        time.sleep(step)


def waited_s(pid):
    """How long a process's first thread has waited for a core: not its own doing."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[1]) / 1e9


class Origin:
    """An origin that tells what it was sent; the end of the path says what it answers."""

    def __init__(self, address="127.0.0.1", port=0):
        origin = self
        self.seen = []
        self.lock = threading.Lock()
        self.delay_s = 0.0
        self.sluice_command = None
        self.gate = threading.Event()
        self.gate.set()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_any(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length) if length else self.read_chunks()
                with origin.lock:
                    origin.seen.append({
                        "method": self.command, "target": self.path, "body": body,
                        "headers": [(k, v) for k, v in self.headers.items()],
                    })
                if origin.delay_s:
                    time.sleep(origin.delay_s)
                origin.gate.wait(20)
                origin.answer(self, body)

            def read_chunks(self):
                if "chunked" not in (self.headers.get("Transfer-Encoding") or ""):
                    return b""
                body = b""
                while True:
                    size = int(self.rfile.readline().split(b";")[0], 16)
                    body += self.rfile.read(size)
                    self.rfile.readline()
                    if size == 0:
                        return body

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = do_any

        self.server = ThreadingHTTPServer((address, port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def answer(self, handler, body):
        path = handler.path.split("?")[0]
        out = b"shop:" + handler.headers.get("Sluice-Session", "none").encode() + b"\n"
        if path.endswith("/echo"):
            out = json.dumps({"headers": handler.headers.items(), "method": handler.command,
                              "target": handler.path, "body": body.decode("latin-1")}).encode()
        if path.endswith("/big"):
            out = b"x" * (8 << 20)
        handler.send_response(200)
        if self.sluice_command:
            handler.send_header("Sluice-Command", self.sluice_command)
        if path.endswith("/cookie"):
            handler.send_header("Set-Cookie", "basket=1; Path=/")
            handler.send_header("ETag", '"v1"')
            handler.send_header("Cache-Control", "public, max-age=60")
        if path.endswith("/chunked"):
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            for piece in (b"one ", b"two ", b"three"):
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                handler.wfile.flush()
            handler.wfile.write(b"0\r\n\r\n")
            return
        handler.send_header("Content-Type", "text/plain")
        handler.send_header("Content-Length", str(len(out)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(out)

    def header(self, name, index=-1):
        with self.lock:
            return [v for k, v in self.seen[index]["headers"] if k.lower() == name.lower()]

    def stop(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()


class Sluice:
    """One appliance. `rooms` and `top` go into the YAML as given."""

    def __init__(self, origin_port, rooms=None, top=None, site=None, link=None,
                 folder_mode=0o700):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-test-"))
        self.folder.chmod(folder_mode)
        self.port = free_port()
        self.link = link or network.link()
        self.process = None
        self.log = ""
        self.config = {
            "listen": [{"address": f"{self.link.host}:{self.port}"}],
            "state": str(self.folder / "state"),
            "user": "root",
            "connections": 2000,
            "sites": [dict({
                "name": "shop",
                "hosts": ["localhost", self.link.host, "tickets.example"],
                "origin": {"servers": [f"127.0.0.1:{origin_port}"]},
                "rooms": rooms if rooms is not None else [room()],
            }, **(site or {}))],
        }
        self.config.update(self.link.config())
        self.config.update(top or {})
        self.command = [BINARY, "run", "-c", str(self.path)]

    @property
    def path(self):
        return self.folder / "sluice.yaml"

    @property
    def address(self):
        return self.link.address

    @property
    def host(self):
        """The address as it stands in a URL."""
        return self.link.host

    @property
    def peer(self):
        """Where visitors come from, in the appliance's eyes."""
        return self.link.peer

    def write(self):
        self.path.write_text(json.dumps(self.config, indent=1))  # JSON is YAML

    def start(self, expect_ready=True):
        self.write()
        self.log_path = self.folder / f"log-{time.monotonic_ns()}"
        # It goes before the tests' own processes: a control thread that gets no core for 200 ms
        # queues newcomers, as it should. Workers that poll a device would leave the tests nothing.
        first = [] if network.is_bypass() else ["nice", "-n", "-10"]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(  # it ends with us, should we be killed
                ["setpriv", "--pdeathsig", "KILL", *first, *self.command], stderr=log, stdout=log,
                stdin=subprocess.DEVNULL)
        if expect_ready:
            wait_for(self.is_ready, START_S, otherwise=self.read_log)
            self.link.plug()
        return self

    def read_log(self):
        return self.log_path.read_text(errors="replace")

    def is_ready(self):
        assert self.process.poll() is None, f"ended at start:\n{self.read_log()}"
        return ": ready" in self.read_log()

    def url(self, path):
        return f"http://{self.host}:{self.port}{path}"

    def connect(self, source=None):
        return socket.create_connection((self.address, self.port),
                                        source_address=(source, 0) if source else None)

    def raw(self, data, seconds=5, half_close=False):
        """Send bytes, return all that comes until the peer closes or the time is over."""
        got = b""
        with contextlib.suppress(socket.timeout, ConnectionResetError), self.connect() as sock:
            sock.settimeout(seconds)
            sock.sendall(data)
            if half_close:
                sock.shutdown(socket.SHUT_WR)
            while piece := sock.recv(65536):
                got += piece
        return got

    def cli(self, *arguments, check=True):
        run = subprocess.run([BINARY, *arguments, "-c", str(self.path)], capture_output=True,
                             text=True, timeout=20)
        assert not check or run.returncode == 0, f"{arguments}: {run.stdout}{run.stderr}"
        return run

    def show(self, *what):
        """What `sluice show --json` prints, without a process for it: tests ask often."""
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as sock:
            sock.settimeout(20)
            sock.connect(f"{self.config['state']}/admin.socket")
            sock.sendall(json.dumps({"command": "show", "arguments": what}).encode() + b"\n")
            answer = json.loads(sock.makefile("rb").readline())
        assert answer["status"] == 0, answer
        return answer["data"]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self, seconds=15):
        """End with SIGTERM; returns the exit status."""
        if self.process is None or self.process.poll() is not None:
            return self.process.returncode if self.process else None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def destroy(self):
        if self.process and self.process.poll() is None:
            self.kill()
        self.link.unplug()
        shutil.rmtree(self.folder, ignore_errors=True)


def serving():
    """The fixture `origin`: a generator, so that it ends with its test."""
    server = Origin()
    yield server
    server.stop()


def starting(origin):
    """The fixture `make`: make(rooms=…, top=…, site=…) starts an appliance in front of `origin`."""
    made = []

    def start(**keys):
        ready, is_started = keys.pop("expect_ready", True), keys.pop("start", True)
        sluice = Sluice(origin.port, **keys)
        made.append(sluice)
        return sluice.start(expect_ready=ready) if is_started else sluice

    yield start
    for sluice in made:
        sluice.destroy()


def room(name="derby", **keys):
    return dict({"name": name, "path": f"/{name}", "capacity": 2}, **keys)


class Again(httpx.HTTPTransport):
    """As browsers do: what was asked on a kept connection that turns out to be gone is asked anew.

    A kernel ends the connections of a process that was killed. Nobody ends those of a TCP that went
    with its process; the next one resets them when they are used.
    """

    def handle_request(self, request):
        with contextlib.suppress(httpx.ReadError, httpx.WriteError):
            return super().handle_request(request)
        return super().handle_request(request)


class Visitor:
    """A browser's cookie jar and habits, over httpx."""

    def __init__(self, sluice, headers=None, base=None, timeout=10):
        self.client = httpx.Client(base_url=base or sluice.url(""), headers=headers or BROWSER,
                                   transport=Again() if network.is_bypass() else None,
                                   timeout=timeout, follow_redirects=False)

    def get(self, path, **keys):
        return self.client.get(path, **keys)

    def status(self, room_name="derby"):
        return self.client.get(f"/.sluice/{room_name}/status", headers=JSON)

    def ticket(self, room_name="derby"):
        return self.client.cookies.get(f"sluice-t-{room_name}")

    def passed(self, room_name="derby"):
        return self.client.cookies.get(f"sluice-p-{room_name}")

    def close(self):
        self.client.close()


def token(text):
    """The fields of a token, read independently of the product."""
    raw = base64.urlsafe_b64decode(text)
    assert len(raw) == 48
    version, secret, kind, flags, line, key, visitor, issued, expires = struct.unpack(
        ">BBBBIQQII", raw[:32])
    return {"version": version, "secret": secret, "kind": kind, "flags": flags, "line": line,
            "key": key, "visitor": visitor, "issued": issued, "expires": expires, "mac": raw[32:]}
