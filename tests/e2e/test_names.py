"""Goal: servers named, not numbered, are found again where they have moved to."""
import subprocess

from sluice import BINARY, Origin, wait_for


def test_a_name_is_resolved_anew(make, visitor, origin):
    """In a mount namespace of its own, so that the machine's hosts file stays as it is."""
    moved = Origin(address="127.0.0.2", port=origin.port)
    try:
        sluice = make(site={"origin": {"servers": [f"shop.test:{origin.port}"]}},
                      start=False)
        hosts = sluice.folder / "hosts"
        hosts.write_text("127.0.0.1 localhost\n127.0.0.1 shop.test\n")
        sluice.command = ["unshare", "-m", "sh", "-c",
                          f"mount --bind {hosts} /etc/hosts && exec {BINARY} run -c {sluice.path}"]
        sluice.start()
        one = visitor(sluice)
        wait_for(lambda: one.get("/about").status_code == 200, 5, 0.1)
        assert origin.seen and not moved.seen
        hosts.write_text("127.0.0.1 localhost\n127.0.0.2 shop.test\n")
        sluice.cli("reload")  # asks at once; by itself it asks every 30 s
        wait_for(lambda: one.get("/about") and moved.seen, 5, 0.1)
        assert subprocess.run(["grep", "-c", "shop.test", "/etc/hosts"],
                              capture_output=True).stdout == b"0\n"
    finally:
        moved.stop()
