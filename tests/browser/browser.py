"""Chromium as visitors have it, and a tab of it in which one of them sits.

A browser has a profile of its own, which goes with it; whatever of it still runs at its end is
ended by pid. What a tab asked for and what it complained about is kept, so that a test can say
that there was nothing.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import tempfile
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from sluice import wait_for

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--no-proxy-server",
)
LANGUAGES = {"en": "en-GB,en;q=0.9", "ja": "ja-JP,ja;q=0.9,en;q=0.5"}
# A clock that a test can put forward.
CLOCK = "const now = Date.now; Date.now = () => now() + (window.slept || 0);"
# What was last read aloud.
LIVE = "return document.querySelector('[role=status][aria-live=polite]').textContent"
PATIENCE_S = 20  # for what should take a poll or two, on a busy machine


class Browser:
    def __init__(self, preferences=None, flags=()):
        self.profile = tempfile.mkdtemp(prefix="sluice-browser-")
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for flag in (*FLAGS, *flags, f"--user-data-dir={self.profile}"):
            options.add_argument(flag)
        options.add_experimental_option("prefs", preferences or {})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        try:
            self.driver = webdriver.Chrome(
                service=Service("/usr/bin/chromedriver", log_path=os.devnull), options=options)
        except WebDriverException:
            self.remove()
            raise
        self.driver.set_page_load_timeout(30)
        self.driver.set_script_timeout(30)

    def pids(self):
        """Of all processes with our profile on their command line."""
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if self.profile.encode() in entry.read_bytes():
                    yield int(entry.parent.name)

    def quit(self):
        with contextlib.suppress(WebDriverException):
            self.driver.quit()
        self.remove()

    def remove(self):
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not list(self.pids()), 10)
        shutil.rmtree(self.profile, ignore_errors=True)


class Tab:
    """A tab of its own; the cookies are the browser's, as ever."""

    def __init__(self, browser, language="en"):
        self.driver = browser.driver
        self.driver.switch_to.new_window("tab")
        self.handle = self.driver.current_window_handle
        self.before_scripts(CLOCK)
        agent = self.js("return navigator.userAgent").replace("Headless", "")
        self.cdp("Emulation.setUserAgentOverride", userAgent=agent,
                 acceptLanguage=LANGUAGES.get(language, language))

    def focus(self):
        self.driver.switch_to.window(self.handle)
        return self

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def before_scripts(self, script):
        """Run `script` in every page from now on, before the page's own."""
        self.cdp("Page.addScriptToEvaluateOnNewDocument", source=script)

    def open(self, url):
        self.driver.get(url)
        return self

    # What the visitor sees.

    def text(self, name):
        """The text of the element with that id, if it is shown."""
        return self.js("const e = document.getElementById(arguments[0]);"
                       "return e && e.checkVisibility() ? e.textContent.trim() : null", name)

    def state(self):
        """Of the queue page; None on every other."""
        return self.js("return document.body.dataset.state?.trim()")

    def body(self):
        return self.js("return document.body.innerText")

    def title(self):
        return self.js("return document.title")

    def address(self):
        return self.js("return location.href")

    def headings(self):
        return self.js("return [...document.querySelectorAll('h1')]"
                       ".filter(e => e.checkVisibility()).map(e => e.textContent)")

    def session(self):
        """The shop says whose session it serves; None on every other page."""
        return self.body().partition("shop:")[2].strip() or None

    # Waiting for it.

    def until(self, what, seconds=PATIENCE_S):
        """Wait until `what` is so. A page that is just being left is no answer."""
        def ask():
            with contextlib.suppress(WebDriverException):
                return what()
        return wait_for(ask, seconds, 0.05)

    def until_state(self, state, seconds=PATIENCE_S):
        self.until(lambda: self.state() == state, seconds)

    def until_shop(self, seconds=PATIENCE_S):
        return self.until(self.session, seconds)

    def mark(self):
        """Mark the document, to know later whether it is still the same one."""
        self.js("window.marked = true")

    def is_marked(self):
        return self.js("return window.marked === true")

    def sleep(self, minutes):
        """The page slept, as it finds by its clock when it wakes."""
        self.js("window.slept = (window.slept || 0) + arguments[0] * 60000", minutes)

    # What the browser lets happen to it.

    def offline(self, yes):
        self.cdp("Network.emulateNetworkConditions", offline=yes, latency=0,
                 downloadThroughput=-1, uploadThroughput=-1)

    def frozen(self, yes):
        self.cdp("Page.setWebLifecycleState", state="frozen" if yes else "active")

    def forget_cookies(self):
        self.cdp("Network.clearBrowserCookies")

    def cookies(self):
        """By name, with all that the browser knows of them."""
        return {c["name"]: c for c in self.cdp("Network.getAllCookies")["cookies"]}

    def cookie(self, name):
        found = self.cookies().get(name)
        return found and found["value"]

    # What it did and said.

    def complaints(self):
        """The console, but for answers that are no success: those the page expects. The browser's
        own pages may say what they want."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if "Failed to load resource" not in entry["message"]
                and not entry["message"].startswith("chrome://")]

    def hosts(self):
        """All that were asked for anything since the last call."""
        hosts = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = urlsplit(message["params"]["request"]["url"])
                if url.scheme not in ("data", "about", "chrome"):
                    hosts.add(url.netloc)
        return hosts
