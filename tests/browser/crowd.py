"""The others: they come, wait and leave at a test's word, by plain requests."""
import contextlib
import re
import socket

import httpx
from sluice import BROWSER, wait_for

TOKEN = re.compile(rb"sluice-([tp])-[a-z]+=([\w-]{64})")


class Crowd:
    def __init__(self, sluice):
        self.sluice = sluice
        self.client = httpx.Client(base_url=sluice.url(""), headers=BROWSER, timeout=20)

    def come(self, count=1, room="derby"):
        """So many come one after the other. Returns what each is given: `p` or `t`, and a token."""
        request = (f"GET /{room}/ HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n")
        last = request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
        data = (request * (count - 1) + last).encode()
        with contextlib.closing(socket.create_connection(("127.0.0.1", self.sluice.port))) as sock:
            sock.settimeout(20)
            got = b""
            for at in range(0, len(data), 4096):
                sock.sendall(data[at:at + 4096])
            while piece := sock.recv(1 << 16):
                got += piece
        given = [(kind.decode(), token.decode()) for kind, token in TOKEN.findall(got)]
        assert len(given) == count, (len(given), got[:400])
        return given

    def enter(self, count=1, room="derby"):
        """So many are let in, at once or, if the store is slow just then, by way of the line.
        Returns their passes."""
        return [token if kind == "p" else self.follow(token, room)
                for kind, token in self.come(count, room)]

    def wait(self, count=1, room="derby"):
        """So many are put in line. Returns their tickets."""
        given = self.come(count, room)
        assert all(kind == "t" for kind, _ in given), given
        return [token for _, token in given]

    def follow(self, ticket, room="derby", seconds=20):
        """Whoever holds that ticket, and is called, comes. Returns their pass."""
        def ask():
            answer = self.client.get(f"/.sluice/{room}/status", headers={"Sluice-Ticket": ticket})
            return answer.json()["state"] == "admitted" and answer.headers["sluice-pass"]
        return wait_for(ask, seconds, 0.1)

    def leave(self, token, room="derby"):
        """Whoever holds that pass or ticket gives it back."""
        header = {"Sluice-Pass": token, "Sluice-Ticket": token}
        answer = self.client.post(f"/.sluice/{room}/leave", headers=header)
        assert answer.status_code == 204, answer.text

    def close(self):
        self.client.close()
