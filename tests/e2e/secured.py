"""An appliance that visitors reach over TLS, and clients for it."""
import re
import socket

import network
from sluice import free_port

NAMES = f"{network.certified()},DNS:tickets.example"
GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
HEALTH = GET % (b"/.sluice/health", b"")


def entry(pair, ocsp=None):
    files = {"certificate": str(pair[0]), "key": str(pair[1])}
    return dict(files, ocsp=str(ocsp)) if ocsp else files


class Secured:
    """An appliance with a listener for TLS (`tls_port`) and a plain one (`port`)."""

    def __init__(self, make, pairs, listen=None, start=True, expect_ready=True, **keys):
        self.tls_port = free_port()
        self.sluice = make(start=False, **keys)
        self.sluice.config["listen"].insert(0, dict(
            {"address": f"{self.sluice.host}:{self.tls_port}", "tls": [entry(p) for p in pairs]},
            **(listen or {})))
        if start:
            self.sluice.start(expect_ready=expect_ready)

    def counters(self):
        return {line["counter"]: line["value"] for line in self.sluice.show("counters")
                if line["part"] == "visitor_tls"}

    @property
    def address(self):
        """As openssl(1) and the like want it."""
        return f"{self.sluice.host}:{self.tls_port}"

    def url(self, path):
        return f"https://{self.sluice.link.name}:{self.tls_port}{path}"

    def connect_plain(self):
        return socket.create_connection((self.sluice.address, self.tls_port))

    def connect(self, context, name="localhost", session=None, first=b""):
        plain = self.connect_plain()
        plain.settimeout(10)
        plain.sendall(first)
        return context.wrap_socket(plain, server_hostname=name, session=session)

    def tls(self, pairs):
        """Name other certificates in the file."""
        self.sluice.config["listen"][0]["tls"] = [entry(p) for p in pairs]
        self.sluice.write()


def ask(stream, request=HEALTH):
    """One answer with a Content-Length on a connection that goes on."""
    stream.sendall(request)
    got = b""
    while b"\r\n\r\n" not in got:
        piece = stream.recv(65536)
        assert piece, got
        got += piece
    head, body = got.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
    while len(body) < length:
        body += stream.recv(65536)
    return head.decode(), body


def session_of(one, context):
    with one.connect(context) as stream:
        ask(stream)  # the ticket of TLS 1.3 comes after the handshake
        return stream.session


def serial(one, context, name="localhost"):
    with one.connect(context, name) as stream:
        return stream.getpeercert()["serialNumber"]
