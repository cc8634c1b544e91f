"""Goal: the process drops what it must not keep, notices what stands still, and says so."""
import ctypes
import json
import os
import pwd
import subprocess

import httpx
from sluice import BINARY, room, wait_for


def status_fields(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def test_privileges_are_dropped(make, visitor):
    sluice = make(top={"user": "nobody"}, folder_mode=0o755)
    uid = str(pwd.getpwnam("nobody").pw_uid)
    fields = status_fields(sluice.process.pid)
    assert set(fields["Uid"].split()) == {uid}
    assert fields["Groups"].split() in ([], [str(pwd.getpwnam("nobody").pw_gid)])
    assert int(fields["CapEff"], 16) == 0 and fields["NoNewPrivs"] == "1"
    assert visitor(sluice).get("/derby/").text.startswith("shop:")
    assert os.stat(sluice.config["state"]).st_uid == int(uid)
    sluice.kill()
    sluice.start()  # what it left behind is still its own


def test_a_log_that_nobody_reads_stops_nothing(make, visitor):
    """stderr is a full pipe from the start: visitors come and go all the same."""
    sluice = make(start=False)
    sluice.write()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, bytes(4096))
    except BlockingIOError:
        os.set_blocking(writer, True)
    sluice.log_path = sluice.folder / "log"
    sluice.process = subprocess.Popen(sluice.command, stderr=writer, stdin=subprocess.DEVNULL)
    one = visitor(sluice)
    wait_for(lambda: answers(one, "/.sluice/health"), 20)
    assert one.get("/derby/").text.startswith("shop:")
    lost = next(line["value"] for line in sluice.show("counters") if line["counter"] == "log_lost")
    assert lost > 0
    heard = b""
    while b"lines were lost" not in heard:  # as soon as somebody reads
        heard += os.read(reader, 65536)
    assert b"sluice warning: %d lines were lost" % lost in heard
    assert sluice.stop() == 0
    os.close(reader)
    os.close(writer)


def answers(visitor, path):
    try:
        return visitor.get(path).status_code == 200
    except httpx.TransportError:
        return False


def test_a_reload_that_the_user_cannot_read_says_so(make):
    sluice = make(top={"user": "nobody"}, folder_mode=0o755)
    os.chmod(sluice.path, 0o600)
    run = sluice.cli("reload", check=False)
    assert run.returncode == 1
    assert "runs as nobody" in run.stdout + run.stderr
    os.chmod(sluice.path, 0o644)
    sluice.cli("reload")


def test_limits_at_their_ends(make, visitor):
    """What the table of keys allows, the process takes."""
    sluice = make(top={"http": {"rate_min": "0", "body_timeout": "24h", "send_timeout": "1h"}})
    answer = visitor(sluice).client.post("/about", content=b"abc")
    assert answer.text == "shop:none\n"


def threads(pid, name):
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as file:
            if file.read().strip() == name:
                yield int(tid)


def health_codes(sluice, count):
    """What health says over that many fresh connections, which spread over the workers."""
    ask = ["curl", "-s", "-m", "1", "-o", "/dev/null", "-w", "%{http_code}",
           sluice.url("/.sluice/health")]
    return {subprocess.run(ask, capture_output=True, text=True).stdout for _ in range(count)}


def test_a_worker_that_stands_still_is_noticed(make):
    """One thread is stopped with ptrace; the other worker still answers, with 503."""
    sluice = make(top={"workers": [0, 1]})
    libc = ctypes.CDLL(None, use_errno=True)
    attach, detach, wall = 16, 17, 0x40000000
    tid = next(threads(sluice.process.pid, "sluice-worker"))
    assert health_codes(sluice, 8) == {"200"}
    assert libc.ptrace(attach, tid, None, None) == 0
    try:
        os.waitpid(tid, wall)
        wait_for(lambda: "stands still" in sluice.read_log(), 5, 0.1)
        assert "503" in health_codes(sluice, 12)
        states = [worker["state"] for worker in sluice.show("workers")]
        assert sorted(states) == ["runs", "stands still"]
    finally:
        libc.ptrace(detach, tid, None, None)
    wait_for(lambda: "goes on" in sluice.read_log(), 5)
    wait_for(lambda: health_codes(sluice, 8) == {"200"}, 5, 0.2)


# Runs a command to which io_uring_setup(2), system call 425, is forbidden by seccomp(2): nobody
# else on the machine notices, as they would of the sysctl.
WITHOUT_IO_URING = """
import ctypes, os, struct, sys
rules = [(0x20, 0, 0, 0),            # load the system call's number
         (0x15, 0, 1, 425),          # is it this one?
         (0x06, 0, 0, 0x00050001),   # EPERM
         (0x06, 0, 0, 0x7fff0000)]   # allowed
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
program = struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code))
if ctypes.CDLL(None).prctl(22, 2, program) != 0:
    sys.exit("seccomp is refused")
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_io_uring_refused_falls_back_to_epoll(make):
    """Where a sysctl or seccomp forbids io_uring the same binary serves, and says so once."""
    sluice = make(start=False)
    sluice.command = ["/usr/bin/python3", "-c", WITHOUT_IO_URING, *sluice.command]
    sluice.start()
    assert sluice.read_log().count("using epoll") == 1
    assert subprocess.run(["curl", "-sf", sluice.url("/.sluice/health")],
                          capture_output=True).returncode == 0


def test_check_lists_every_error_with_its_place(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("listen:\n  - address: nowhere\nsites:\n  - name: shop\n    hosts: [a b]\n"
                    "    origin: {servers: []}\n    roms: []\n")
    run = subprocess.run([BINARY, "check", "-c", str(path)], capture_output=True, text=True)
    assert run.returncode == 1
    lines = (run.stdout + run.stderr).splitlines()
    assert sum(line.startswith(f"{path}:") for line in lines) >= 4
    assert any("roms" in line and "rooms" in line for line in lines), "the nearest known key"


def test_two_workers_share_one_line(make, visitor):
    sluice = make(top={"workers": [0, 1]}, rooms=[room(capacity=1)])
    visitor(sluice).get("/derby/")
    people = [visitor(sluice) for _ in range(16)]
    for one in people:
        one.get("/derby/")
    positions = [one.status().json()["position"] for one in people]
    assert positions == list(range(1, 17))
    requests = [w["requests"] for w in sluice.show("workers")]
    assert len(requests) == 2 and json.dumps(requests)
