"""Goal: the command line (contract section 6) does what it says, and says what is wrong."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import time

import pytest
from sluice import BINARY, free_port, room, token, wait_for


def fill(make, visitor, **keys):
    """A room with one inside and one waiting."""
    sluice = make(rooms=[room(capacity=1, **keys)])
    inside, waiting = visitor(sluice), visitor(sluice)
    assert inside.get("/derby/").text.startswith("shop:")
    waiting.get("/derby/")
    assert waiting.ticket()
    return sluice, inside, waiting


def test_show(make, visitor):
    sluice, _, waiting = fill(make, visitor)
    rooms = sluice.show("rooms")
    assert [r["room"] for r in rooms] == ["derby"]
    assert rooms[0]["sessions"] == 1 and rooms[0]["waiting"] + rooms[0]["called"] == 1
    one = sluice.show("room", "derby")
    assert one["capacity"] == 1 and one["store"]["state"] == "saved"
    assert sluice.show("workers")[0]["state"] == "runs"
    counters = {(c["part"], c["counter"]): c["value"] for c in sluice.show("counters")}
    assert counters["worker", "tickets"] == 1 and counters["worker", "granted"] == 1
    assert sluice.show("origin")[0]["state"] == "in use"
    for what in (["rooms"], ["room", "derby"], ["workers"], ["counters"], ["origin"]):
        assert sluice.cli("show", *what).stdout  # as tables
    stands = json.loads(sluice.cli("ticket", waiting.ticket(), "--json").stdout)
    assert stands["kind"] == "ticket" and stands["signed"] and stands["position"] == 1
    flipped = "B" + waiting.ticket()[1:]
    assert sluice.cli("ticket", flipped, check=False).returncode == 1
    alike = sluice.cli("ticket", "A" * 64, check=False)
    assert alike.returncode == 1 and "a ticket or a pass of version 1" in alike.stderr
    assert "64 characters of base64url" in sluice.cli("ticket", "A", check=False).stderr


def test_pause_and_resume(make, visitor):
    sluice, inside, waiting = fill(make, visitor)
    sluice.cli("room", "derby", "pause")
    inside.client.post("/.sluice/derby/leave")
    time.sleep(2.5)
    assert waiting.status().json()["state"] in ("waiting", "next")
    assert visitor(sluice).get("/derby/").headers["sluice-state"] in ("waiting", "next")
    sluice.cli("room", "derby", "resume")
    wait_for(lambda: waiting.status().json()["state"] == "admitted", 10, 0.3)


def test_close_and_open(make, visitor):
    sluice, inside, waiting = fill(make, visitor)
    sluice.cli("room", "derby", "close")
    wait_for(lambda: waiting.status().json()["state"] == "closed", 3, 0.1)
    assert visitor(sluice).get("/derby/").headers["sluice-state"] == "closed"
    assert inside.get("/derby/").text.startswith("shop:"), "passes go on"
    sluice.cli("room", "derby", "open")
    wait_for(lambda: waiting.status().json()["state"] != "closed", 3, 0.1)


def test_message_reaches_page_and_json_escaped(make, visitor):
    sluice, _, waiting = fill(make, visitor)
    text = 'Gates "A" & <b>B</b> 本日'
    sluice.cli("room", "derby", "message", text)
    wait_for(lambda: waiting.status().json()["message"] == text, 3, 0.1)
    page = waiting.get("/derby/").text
    assert "&lt;b&gt;B&lt;/b&gt; 本日" in page and "<b>B</b>" not in page
    sluice.cli("room", "derby", "message", "")
    wait_for(lambda: waiting.status().json()["message"] is None, 3, 0.1)
    assert sluice.cli("room", "derby", "message", "a\x01b", check=False).returncode == 1
    assert sluice.cli("room", "derby", "message", "x" * 2000, check=False).returncode == 1


def test_commands_outlast_a_restart(make, visitor):
    sluice, _, waiting = fill(make, visitor)
    sluice.cli("room", "derby", "pause")
    sluice.cli("room", "derby", "message", "back at noon")
    sluice.kill()
    sluice.start()
    assert sluice.show("room", "derby")["state"] == "paused"
    assert waiting.status().json()["message"] == "back at noon"


def test_mode(make, visitor):
    sluice = make(rooms=[room(capacity=1)])
    sluice.cli("room", "derby", "mode", "reject")
    wait_for(lambda: visitor(sluice).get("/derby/").headers.get("sluice-state") == "rejected", 3)
    sluice.cli("room", "derby", "mode", "off")
    wait_for(lambda: visitor(sluice).get("/derby/").text == "shop:none\n", 3)
    sluice.cli("room", "derby", "mode", "always")
    wait_for(lambda: visitor(sluice).get("/derby/").headers.get("sluice-state"), 3)
    assert sluice.cli("room", "derby", "mode", "never", check=False).returncode == 2


def test_release_calls_but_capacity_holds(make, visitor):
    sluice, _, waiting = fill(make, visitor)
    sluice.cli("room", "derby", "release", "5")
    wait_for(lambda: waiting.status().json()["state"] == "next", 5, 0.2)
    assert sluice.show("room", "derby")["sessions"] == 1
    negative = sluice.cli("room", "derby", "release", "-1", check=False)
    assert negative.returncode == 2
    assert negative.stderr.startswith("sluice: -1: want a number without a sign\n")


def test_rotate_keeps_and_revoke_ends(make, visitor):
    sluice, inside, waiting = fill(make, visitor)
    old = token(waiting.ticket())["secret"]
    sluice.cli("secrets", "rotate")
    secrets = json.loads(sluice.cli("secrets", "list", "--json").stdout)
    assert {s["state"] for s in secrets} == {"current", "old"}
    assert waiting.status().json()["position"] == 1
    late = visitor(sluice)
    wait_for(lambda: late.get("/derby/") and token(late.ticket())["secret"] != old, 3, 0.2)
    sluice.cli("secrets", "revoke", str(old))
    wait_for(lambda: waiting.status().status_code == 401, 3, 0.1)
    assert not inside.get("/derby/").text.startswith("shop:")


def test_reload_keeps_connections_and_places(make, visitor):
    sluice, inside, waiting = fill(make, visitor)
    port = waiting.client
    position = waiting.status().json()["position"]
    sluice.config["sites"][0]["rooms"][0]["capacity"] = 5
    sluice.config["sites"][0]["rooms"].append(room("cup"))
    sluice.write()
    sluice.cli("reload")
    assert port.get("/.sluice/derby/status", headers={"Accept": "application/json"}).json()
    wait_for(lambda: waiting.status().json()["state"] == "admitted", 10, 0.3)
    assert position == 1
    assert visitor(sluice).get("/cup/").text.startswith("shop:")
    assert inside.get("/derby/").text.startswith("shop:")


def test_reload_names_keys_that_need_a_restart_until_there_is_one(make):
    sluice = make()
    sluice.config["connections"] = 4000
    sluice.write()
    for _ in range(2):
        run = sluice.cli("reload")
        assert "connections" in run.stdout + run.stderr
    sluice.config["connections"] = 2000
    sluice.write()
    assert "connections" not in sluice.cli("reload").stdout


def test_a_bad_reload_changes_nothing(make, visitor):
    sluice, _, waiting = fill(make, visitor)
    sluice.config["sites"][0]["rooms"][0]["capacitty"] = 5
    sluice.config["sites"][0]["rooms"][0]["session"] = "10 parsecs"
    sluice.write()
    run = sluice.cli("reload", check=False)
    assert run.returncode == 1
    assert "capacitty" in run.stdout + run.stderr and "parsecs" in run.stdout + run.stderr
    assert waiting.status().json()["position"] == 1


def test_a_second_process_refuses(make):
    sluice = make()
    run = subprocess.run([BINARY, "run", "-c", str(sluice.path)], capture_output=True, text=True,
                         timeout=10)
    assert run.returncode == 1
    assert "state" in run.stderr


@pytest.mark.sockets
def test_a_second_process_on_the_address_refuses(make):
    """Another state directory does not help."""
    sluice = make()
    other = dict(sluice.config, state=str(sluice.folder / "other"))
    path = sluice.folder / "other.yaml"
    path.write_text(json.dumps(other))
    run = subprocess.run([BINARY, "run", "-c", str(path)], capture_output=True, text=True,
                         timeout=10)
    assert run.returncode == 1
    assert str(sluice.port) in run.stderr


def test_wrong_usage_and_no_process(make):
    sluice = make()
    for wrong in (["fly"], ["show", "nothing"], ["room", "derby"], ["check", "--what"]):
        assert sluice.cli(*wrong, check=False).returncode == 2, wrong
    assert sluice.cli("room", "nobody", "pause", check=False).returncode == 1
    sluice.stop()
    gone = sluice.cli("show", "rooms", check=False)
    assert gone.returncode == 1 and "not running" in gone.stderr


def test_socket_is_private(make):
    sluice = make()
    path = os.path.join(sluice.config["state"], "admin.socket")
    assert os.stat(path).st_mode & 0o777 == 0o600


@pytest.mark.smoke
def test_drain_finishes_what_is_under_way(make, visitor, origin):
    import threading
    sluice = make(rooms=[room(capacity=5)])
    one = visitor(sluice)
    one.get("/derby/")
    origin.gate.clear()
    answers = []
    thread = threading.Thread(target=lambda: answers.append(one.get("/derby/slow")))
    thread.start()
    wait_for(lambda: len(origin.seen) == 2, 5)
    with sluice.connect() as balancer:
        balancer.settimeout(5)
        sluice.process.terminate()
        wait_for(lambda: "draining" in sluice.read_log(), 5)
        time.sleep(0.3)  # the workers know it too
        balancer.sendall(b"GET /.sluice/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert balancer.recv(65536).startswith(b"HTTP/1.1 503 ")
    origin.gate.set()
    thread.join(10)
    assert answers[0].text.startswith("shop:")
    assert sluice.process.wait(10) == 0


@pytest.mark.sockets
def test_a_drain_answers_newcomers(make, visitor, origin):
    """Over the kernel's sockets: health says 503 to whoever asks, a newcomer gets the page."""
    sluice = make(rooms=[room(capacity=5)])
    origin.gate.clear()
    with sluice.connect() as busy:
        busy.sendall(b"GET /about HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(lambda: origin.seen, 5)
        sluice.process.terminate()
        wait_for(lambda: visitor(sluice).get("/.sluice/health").status_code == 503, 5, 0.05)
        answer = visitor(sluice).get("/derby/")
        assert answer.status_code == 503 and answer.headers["connection"] == "close"
        origin.gate.set()
        assert busy.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert sluice.process.wait(10) == 0


def test_drain_sees_answers_off(make):
    """An answer that the origin has given whole reaches a slow reader whole."""
    sluice = make(rooms=[])
    with contextlib.closing(socket.socket(sluice.link.family)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.connect((sluice.address, sluice.port))
        sock.settimeout(10)
        sock.sendall(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        got = 0
        while got < 1 << 20 or sluice.show("workers")[0]["busy"] > 0:
            got += len(sock.recv(1 << 16))
        sluice.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        while piece := sock.recv(1 << 16):
            got += len(piece)
        assert got > 8 << 20
    assert sluice.process.wait(10) == 0


def test_drain_has_an_end(make, visitor, origin):
    import threading
    sluice = make(top={"drain": "1s"})
    one = visitor(sluice)
    origin.gate.clear()

    def ask():
        try:
            one.get("/derby/")
        except Exception:  # cut: that is the point
            pass

    thread = threading.Thread(target=ask)
    thread.start()
    wait_for(lambda: origin.seen, 5)
    began = time.monotonic()
    assert sluice.stop() == 0
    assert time.monotonic() - began < 4
    origin.gate.set()
    thread.join(5)


def test_check_and_keys(make):
    sluice = make()
    assert "total" in sluice.cli("check").stdout
    keys = json.loads(sluice.cli("keys", "--json").stdout)
    names = {k.get("name") or k.get("key") for k in keys}
    assert any("capacity" in n for n in names)
    assert free_port()


def test_json_of_every_command(make, visitor):
    """Also of those that have only words for people, and of what went wrong."""
    lanes = [{"name": "staff", "codes": "codes.txt"}]
    sluice = make(rooms=[room(capacity=1, lanes=lanes)], start=False)
    (sluice.folder / "codes.txt").write_text("7GQX-4TRM-9KPD\n")
    sluice.start()
    people = [visitor(sluice), visitor(sluice)]
    for one in people:
        one.get("/derby/")
    ticket = people[1].ticket()

    def said(*words, status=0):
        run = sluice.cli(*words, "--json", check=False)
        assert run.returncode == status, (words, run.stdout, run.stderr)
        return json.loads(run.stdout)

    for what in ("rooms", "pools", "workers", "counters", "origin"):
        assert isinstance(said("show", what), list), what
    assert said("show", "room", "derby")["room"] == "derby"
    assert said("show", "cluster")
    assert said("ticket", ticket)["kind"] == "ticket"
    assert said("secrets", "list")[0]["state"] == "current"
    assert "signs" in said("secrets", "rotate")["text"]
    assert said("secrets", "revoke", "1")["done"] is True
    assert said("lane", "link", "derby/staff")["link"].startswith("http://")
    assert said("lane", "code", "derby/staff", "7GQX-4TRM-9KPD")["used"] == 0
    for words in (["pause"], ["resume"], ["close"], ["open"], ["release", "1"],
                  ["message", "a", "b"], ["mode", "always"]):
        assert said("room", "derby", *words)["done"] is True, words
    assert "no draw" in said("room", "derby", "salt", "00", status=1)["text"]
    places = said("draw", "verify", ticket, "A" * 64, status=1)
    assert [place["place"] for place in places] == [None, None] and places[0]["reason"]
    assert {key["name"] for key in said("keys")} >= {"listen", "sites[].rooms[].path"}
    assert said("keys", "plan")
    good = said("check")
    assert good["good"] and not good["said"] and good["total_bytes"] > 0
    assert sum(row["bytes"] for row in good["bill"]) == good["total_bytes"]
    assert said("reload")["done"] is True
    sluice.config["sites"][0]["rooms"][0]["capacity"] = "many"
    sluice.write()
    bad = said("check", status=1)
    assert not bad["good"] and bad["errors"] == 1 == len(bad["said"])
    assert bad["said"][0]["line"] > 1 and "capacity: 'many'" in bad["said"][0]["text"]
    assert "capacity: 'many'" in said("reload", status=1)["text"]
    assert said("drain")["done"] is True
