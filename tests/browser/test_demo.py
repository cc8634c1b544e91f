"""Goal: whoever runs the demo and opens what it prints sees what it says, and Ctrl-C leaves nothing
behind. The names need no entry anywhere: browsers know that *.localhost is this machine."""
import pathlib
import re
import signal
import subprocess
import tempfile

import pytest
from browser import Tab
from sluice import ROOT, free_port, wait_for
from test_screens import look

OPENS_S = 12


def hears_ctrl_c():
    """A shell that was started in the background ignores it, and all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Demo:
    def __init__(self, folder):
        self.port = free_port() % 20000 + 20000  # the shop is a thousand above
        self.said = pathlib.Path(folder) / "said"
        with open(self.said, "wb") as said:
            self.process = subprocess.Popen(
                [ROOT / "config/demo/run", "--crowd", "40", "--port", str(self.port), "--opens",
                 str(OPENS_S)], stdout=said, stderr=said, cwd=folder, preexec_fn=hears_ctrl_c,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": folder})
        wait_for(lambda: "Ctrl-C" in self.read() or self.process.poll() is not None, 120)
        assert self.process.poll() is None, self.read()
        self.urls = re.findall("^open (http://.*)", self.read(), re.M)

    def read(self):
        return self.said.read_text()

    def end(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(20)


@pytest.fixture
def demo():
    with tempfile.TemporaryDirectory(prefix="sluice-demo-") as folder:
        started = Demo(folder)
        yield started
        if started.process.poll() is None:
            started.end()


def processes(port):
    """Of whom the command line names the port, or the shop's."""
    words = (str(port), str(port + 1000))
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = entry.read_text()
        except OSError:
            continue
        if any(word in text for word in words):
            yield text


def test_what_it_prints(demo, browser):
    derby, cup, opener = demo.urls
    port = demo.port
    assert derby == f"http://127.0.0.1:{port}/derby/"
    assert cup == f"http://football.localhost:{port}/cup/"
    assert opener == f"http://baseball.localhost:{port}/opener/"
    folder = pathlib.Path(re.search(r"-c (\S+)/sluice.yaml", demo.read()).group(1))
    assert folder.exists()
    tabs = [Tab(browser), Tab(browser, "ja"), Tab(browser)]

    # A club's pre-queue: it counts down, draws, and in the end takes in.
    gathers = tabs[0].focus().open(cup)
    assert gathers.state() == "prequeue" and re.fullmatch(r"0:00:\d\d", gathers.text("countdown"))
    assert "Harbour Town F.C." in gathers.body()
    gathers.mark()

    # The other club, in the visitor's language; a queue forms at once.
    queues = tabs[1].focus()
    queues.until(lambda: queues.open(opener).state() == "waiting" or queues.forget_cookies())
    assert "リバーシティ・ヘロンズ" in queues.body()
    look(queues, "demo-opener-ja", sizes=["phone"])
    waits = tabs[2].focus()
    waits.until(lambda: waits.open(derby).state() == "waiting" or waits.forget_cookies())

    gathers.focus().until(lambda: gathers.text("countdown") == "a moment…", OPENS_S)
    look(gathers, "demo-moment-en", sizes=["phone"], themes=["light"])
    gathers.until(lambda: gathers.sleep(minutes=2) or gathers.state() != "prequeue")
    if gathers.state() == "waiting":
        look(gathers, "demo-drawn-en", sizes=["phone"], themes=["light"])
    for one in tabs:
        one.focus().until(lambda: "You are in" in one.headings(), 60)
        one.driver.close()
    browser.driver.switch_to.window(browser.driver.window_handles[0])

    assert demo.end() == 0
    assert not list(processes(port)) and not folder.exists()
