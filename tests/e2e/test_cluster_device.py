"""Goal: two appliances with network cards of their own are one, as two on the kernel's sockets are.

`driver: dpdk`, each on a link of its own, and a real redis-server: one story.
"""
import http.cookies
import threading

import httpx
import pytest
from sluice import BROWSER, JSON, room, token, wait_for
from test_cluster import Cluster, is_inside

pytestmark = [pytest.mark.bypass("af_packet"), pytest.mark.once, pytest.mark.xdist_group("cluster")]

ROOMS = [
    room("one", capacity=1, session="60s"),
    room("few", capacity=3, session="2s"),
    room("free", capacity=50, session="60s"),
]


class Pair(Cluster):
    def make(self, name, rooms=None, key=None):
        return super().make(name, rooms or ROOMS, key)

    def start(self):
        self.redis.start()
        for name in ("a", "b"):
            self.at[name] = self.make(name).start()
        self.wait_whole()
        return self


class Holder:
    """Cookies of a visitor to one name, whichever of its addresses is asked."""

    def __init__(self):
        self.cookies = {}

    def ask(self, sluice, path, method="GET", headers=None):
        sent = {**BROWSER, **(headers or {}), "Host": "tickets.example"}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
        answer = httpx.request(method, sluice.url(path), headers=sent, timeout=10)
        for line in answer.headers.get_list("set-cookie"):
            for name, cookie in http.cookies.SimpleCookie(line).items():
                self.cookies[name] = cookie.value
                if cookie["max-age"] == "0" or not cookie.value:
                    del self.cookies[name]
        return answer

    def load(self, sluice, name):
        return self.ask(sluice, f"/{name}/")

    def status(self, sluice, name):
        return self.ask(sluice, f"/.sluice/{name}/status", headers=JSON).json()


@pytest.fixture
def pair():
    made = Pair()
    try:
        yield made.start()
    finally:
        made.destroy()


def crowd(pair, seconds, people=6):
    """Passes that people of both got in that time."""
    passes, stop = [], threading.Event()

    def come(i):
        ways = pair.all()[i % 2:] + pair.all()[:i % 2]
        while not stop.is_set():
            one, turn = Holder(), 0
            one.load(ways[0], "few")
            while "sluice-p-few" not in one.cookies and not stop.wait(0.15):
                turn += 1
                one.status(ways[turn % 2], "few")
            if "sluice-p-few" in one.cookies:
                passes.append(token(one.cookies["sluice-p-few"]))
            stop.wait(0.5)

    threads = [threading.Thread(target=come, args=(i,)) for i in range(people)]
    for thread in threads:
        thread.start()
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return {p["key"]: p for p in passes}.values()


def test_two_appliances_on_devices(pair):
    a, b = pair.all()

    # Whoever arrives on A has the place on B.
    first, second, third = Holder(), Holder(), Holder()
    wait_for(lambda: is_inside(first.load(a, "one")), 10, 0.2, otherwise=pair.describe)
    assert not is_inside(second.load(a, "one"))
    wait_for(lambda: second.status(b, "one")["position"] == 1, 5, 0.1)
    assert not is_inside(third.load(b, "one"))
    wait_for(lambda: third.status(a, "one")["position"] == 2, 5, 0.1)
    assert is_inside(first.load(b, "one"))

    # Ended on A by the origin, refused on B; the second is called and goes in there.
    pair.origin.sluice_command = "end"
    first.load(a, "one")
    pair.origin.sluice_command = None
    wait_for(lambda: not is_inside(first.load(b, "one")), 2, 0.05)
    wait_for(lambda: second.status(b, "one")["state"] == "admitted", 10, 0.2,
             otherwise=pair.describe)
    assert is_inside(second.load(b, "one")) and is_inside(second.load(a, "one"))
    assert third.status(a, "one")["state"] in ("waiting", "next")  # not admitted

    # By the passes themselves, never more than fit.
    inside = crowd(pair, 4)
    assert len(inside) >= 4
    for second_s in range(min(p["issued"] for p in inside), max(p["expires"] for p in inside)):
        assert sum(p["issued"] <= second_s < p["expires"] for p in inside) <= 3
    for sluice in pair.all():
        view = sluice.show("cluster")
        assert view["over_admitted_max"] == 0 and view["conflicts"] == []

    # A leaves; its people go on at B.
    late = Holder()
    wait_for(lambda: is_inside(late.load(a, "free")), 5, 0.2)
    assert a.stop() == 0
    wait_for(lambda: {m["appliance"]: m["state"] for m in b.show("cluster")["members"]}
             == {"a": "left", "b": "live"}, 3, otherwise=pair.describe)
    assert is_inside(late.load(b, "free")) and is_inside(second.load(b, "one"))
    assert third.status(b, "one")["position"] == 2
    wait_for(lambda: is_inside(Holder().load(b, "free")), 5, 0.2, otherwise=pair.describe)
