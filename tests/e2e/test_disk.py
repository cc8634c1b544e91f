"""Goal: a full disk costs nobody the place; what could not be saved is said, and made good."""
import contextlib
import os
import subprocess
import time

import pytest
from sluice import Sluice, room, wait_for


@pytest.fixture
def on_small_disk(origin):
    """An appliance whose state lies on a file system of 64 MB that the test can fill."""
    sluice = Sluice(origin.port, rooms=[room(capacity=3, session="5s")])
    state = sluice.folder / "state"
    state.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs", str(state)],
                   check=True)
    try:
        yield sluice.start()
    finally:
        if sluice.process.poll() is None:
            sluice.kill()
        subprocess.run(["umount", str(state)], check=True)
        sluice.destroy()


def fill(sluice):
    path = os.path.join(sluice.config["state"], "fill")
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(file, b"x" * 4096)
    os.close(file)
    return path


def store(sluice):
    return sluice.show("room", "derby")["store"]


def test_goes_on_from_memory_and_catches_up(on_small_disk, visitor):
    sluice = on_small_disk
    assert store(sluice)["state"] == "saved"
    path = fill(sluice)
    inside = [visitor(sluice) for _ in range(3)]
    for one in inside:
        assert one.get("/derby/").text.startswith("shop:")
    assert not visitor(sluice).get("/derby/").text.startswith("shop:"), "capacity holds"
    wait_for(lambda: store(sluice)["state"] == "unsaved", 5, 0.1)
    assert store(sluice)["unsaved"] >= 3
    wait_for(lambda: "unsaved" in sluice.read_log(), 3)
    os.remove(path)
    wait_for(lambda: store(sluice)["state"] == "saved", 10, 0.2)
    sluice.kill()
    sluice.start()
    for one in inside:
        assert one.get("/derby/").status_code == 200


def test_after_a_crash_unsaved_nobody_new_for_one_session(on_small_disk, visitor):
    sluice = on_small_disk
    path = fill(sluice)
    one = visitor(sluice)
    assert one.get("/derby/").text.startswith("shop:")
    wait_for(lambda: store(sluice)["state"] == "unsaved", 5, 0.1)
    sluice.kill()
    os.remove(path)
    sluice.start()
    began = time.monotonic()
    assert one.get("/derby/").text.startswith("shop:"), "its pass still holds"
    new = visitor(sluice)
    assert not new.get("/derby/").text.startswith("shop:")
    assert sluice.show("room", "derby")["quiet_until"]
    wait_for(lambda: new.status().json()["state"] == "admitted", 15, 0.3)
    assert time.monotonic() - began > 3
