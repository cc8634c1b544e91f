"""Goal: over TLS, too, whoever types a name comes through the page to the shop, over the kernel's
sockets and over a network card of our own; their cookies never go in plain."""
import base64
import hashlib

import httpx
import network
import pytest
from authority import Authority, openssl
from browser import Browser
from sluice import BROWSER, room

NAME = "tickets.example"


@pytest.fixture(params=["sockets", "af_packet"])
def link(request):
    is_kernel = request.param == "sockets"
    return network.Loopback() if is_kernel else network.Link(device=request.param)


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "root")


@pytest.fixture
def pair(authority, link):
    return authority.pair(f"DNS:{NAME},IP:{link.address}")


@pytest.fixture
def host():
    return NAME


@pytest.fixture
def browser(link, pair):
    """It finds the name at the link, and takes this key for its own."""
    key = openssl("pkey", "-in", pair[1], "-pubout", "-outform", "der").stdout
    trusted = base64.b64encode(hashlib.sha256(key).digest()).decode()
    chromium = Browser(flags=(f"--host-resolver-rules=MAP {NAME} {link.address}",
                              f"--ignore-certificate-errors-spki-list={trusted}"))
    yield chromium
    chromium.quit()


@pytest.fixture
def secured(make, link, pair):
    """On the usual ports: what comes in plain is sent to the other."""
    sluice = make(start=False, link=link, rooms=[room(capacity=1)],
                  site={"hosts": [NAME, link.host], "https": "redirect", "hsts": "1y"})
    certificate, key = map(str, pair)
    sluice.config["listen"] = [
        {"address": f"{link.host}:80"},
        {"address": f"{link.host}:443", "tls": [{"certificate": certificate, "key": key}]}]
    return sluice.start()


def is_kept_safe(cookie, same_site):
    return cookie["secure"] and cookie["httpOnly"] and cookie.get("sameSite") == same_site


def test_through_the_page_to_the_shop(secured, link, authority, tab, origin):
    with httpx.Client(base_url=f"https://{link.host}", verify=authority.client(),
                      headers=BROWSER) as inside:
        assert inside.get("/derby/").text.startswith("shop:")
        visitor = tab().open(f"http://{NAME}/derby/seats?row=7#front")
        assert visitor.state() == "waiting"
        assert visitor.address() == f"https://{NAME}/derby/seats?row=7#front"
        assert visitor.js("return isSecureContext") is True
        assert visitor.text("place") == "1"
        visitor.mark()
        place = visitor.cookies()["sluice-t-derby"]
        assert is_kept_safe(place, "Lax")

        # The page asks on by itself, over TLS.
        secured.cli("room", "derby", "message", "Soon")
        visitor.until(lambda: visitor.text("message") == "Soon")
        assert visitor.is_marked()

        # Called, the page leads to where they wanted to go.
        assert inside.post("/.sluice/derby/leave").status_code == 204
        visitor.until_shop()
    assert visitor.address() == f"https://{NAME}/derby/seats?row=7#front"
    assert is_kept_safe(visitor.cookies()["sluice-p-derby"], "None")
    assert origin.header("X-Forwarded-Proto") == ["https"]

    # Whoever types the name again does not ask in plain, even where that would be answered.
    secured.config["sites"][0]["https"] = "off"
    secured.write()
    secured.cli("reload")
    assert httpx.get(f"http://{link.host}/").text.startswith("shop:")
    assert visitor.open(f"http://{NAME}/derby/").session()
    assert visitor.address() == f"https://{NAME}/derby/"
