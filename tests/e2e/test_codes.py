"""Goal: a code takes its holder into a lane, as often as it may and no more, whatever happens; and
nobody gets in by guessing or by what they write instead of one."""
import concurrent.futures
import contextlib
import hashlib
import re
import subprocess
import time

import pytest
from sluice import BINARY, JSON, room, token, wait_for

pytestmark = pytest.mark.above

PAGE = "/.sluice/derby/code"
LIST = """# letters to members
7GQX-4TRM
K2M9-XW7P, 3
LATE-R2QD
"""
HASHED = "sha256:" + hashlib.sha256(b"v4p8n6kd").hexdigest()
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def start(make):
    """start(list, top keys, room keys…): everybody queues; the lane `members` has the list."""
    def begin(codes=LIST, top=None, **keys):
        lanes = [{"name": "members", "weight": 3, "codes": "members.txt"}, {"name": "press"}]
        sluice = make(rooms=[room(**{"mode": "always", "capacity": 2, "lanes": lanes, **keys})],
                      top=top, start=False)
        (sluice.folder / "members.txt").write_text(codes)
        return sluice.start()
    return begin


def rewrite(sluice, codes):
    (sluice.folder / "members.txt").write_text(codes)
    return sluice.cli("reload", check=False)


def post(one, code, **keys):
    return one.client.post(PAGE, data={"code": code}, **keys)


def ask(one, code):
    """The JSON of an answer and its status."""
    answer = post(one, code, headers=JSON)
    assert answer.headers["content-type"] == "application/json"
    return answer.status_code, answer.json()


def reason(one, code):
    status, said = ask(one, code)
    assert said["status"] == status
    return status, said["reason"]


def is_member(sluice, one):
    return sluice.cli("ticket", one.ticket()).stdout.find("derby/members") > 0


def counted(sluice, part="worker"):
    return {c["counter"]: c["value"] for c in sluice.show("counters") if c["part"] == part}


def used(sluice, code):
    text = sluice.cli("lane", "code", "derby/members", code, "--json").stdout
    return int(re.search(r'"used": *(\d+)', text).group(1))


def early_in_a_minute():
    """The guard forgets at its end."""
    if time.time() % 60 > 55:
        time.sleep(61 - time.time() % 60)


@pytest.mark.smoke
def test_a_code_takes_its_holder_into_the_lane(start, visitor):
    sluice = start()
    one = visitor(sluice)
    one.get("/derby/")
    page = one.get(PAGE)
    assert page.status_code == 200 and 'name="code"' in page.text
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "same-origin"
    assert 'role="alert"' not in page.text
    answer = post(one, "7gqx 4trm")  # as people type
    assert answer.status_code == 303 and answer.headers["location"] == "/derby"
    assert is_member(sluice, one)
    assert one.status().json()["state"] in ("waiting", "next", "admitted")
    wait_for(lambda: one.get("/derby/").text.startswith("shop:"), 8, 0.2)
    # It was good for once; whoever is in needs none.
    assert post(one, "7GQX-4TRM").status_code == 303
    other = visitor(sluice)
    again = post(other, "7GQX4TRM")
    assert again.status_code == 403 and not other.ticket()
    assert "has been used" in again.text
    assert reason(other, "7GQX-4TRM") == (403, "code_spent")
    told = sluice.show("room", "derby/members")
    assert [told[k] for k in ("codes", "code_uses", "codes_used", "code_uses_made")] == [3, 5, 1, 1]
    now = counted(sluice)
    assert (now["codes_honoured"], now["code_spent"], now["code_pages"]) == (1, 2, 1)


def test_codes_of_several_uses_and_hashed_ones(start, visitor):
    sluice = start(LIST + HASHED + ", 2\n")
    for code, uses in (("k2m9xw7p", 3), ("V4P8-N6KD", 2)):
        for _ in range(uses):
            assert ask(visitor(sluice), code)[0] == 200
        assert reason(visitor(sluice), code) == (403, "code_spent")
        assert used(sluice, code) == uses
    assert reason(visitor(sluice), HASHED) == (400, "code_invalid")


def test_as_json(start, visitor):
    sluice = start()
    one = visitor(sluice)
    assert one.client.get(PAGE, headers=JSON).json() == {"room": "derby", "wants": "code"}
    answer = one.client.post(PAGE, json={"code": "7GQX-4TRM"})
    assert answer.status_code == 200 and answer.json()["state"] == "waiting"
    assert answer.json()["position"] == 1 and one.ticket()
    # Who is in the lane shows a code of it once more: a lost answer costs nothing.
    again = one.client.post(PAGE, json={"code": "7GQX-4TRM"})
    assert again.json()["state"] in ("waiting", "next") and again.json()["position"] == 1
    assert one.client.post(PAGE, json={"code": "K2M9-XW7P"}).status_code == 200
    assert used(sluice, "K2M9-XW7P") == 0
    for body in ("{}", '{"code": 7}', '{"code": "7GQX"', '{"code": "\\u0037GQX"}',
                 '{"other": "7GQX-4TRM"}', '["7GQX-4TRM"]'):
        answer = one.client.post(PAGE, content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["reason"]) == (400, "code_invalid"), body
    assert counted(sluice)["codes_known"] == 2
    assert one.client.put(PAGE).headers["allow"] == "GET, HEAD, POST"
    assert visitor(sluice).get("/.sluice/other/code").status_code == 404


def test_one_use_is_one_use_however_many_ask_at_once(start):
    sluice = start(top={"workers": [0, 1], "code_attempts": 1000})

    def show(code):
        got = sluice.raw(f"POST {PAGE} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         f"Content-Length: {len(code) + 5}\r\n\r\ncode={code}".encode())
        return int(got.split()[1])
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        once = list(pool.map(show, ["7GQX-4TRM"] * 32))
        thrice = list(pool.map(show, ["K2M9-XW7P"] * 32))
    assert sorted(once) == [303] + [403] * 31
    assert sorted(thrice) == [303] * 3 + [403] * 29
    assert (used(sluice, "7GQX-4TRM"), used(sluice, "K2M9-XW7P")) == (1, 3)


def number_of(page):
    """What the page has its form send along."""
    return re.search(r'name="once" value="([0-9a-f]{16})"', page.text).group(1)


def test_a_lost_answer_costs_nothing(start, visitor):
    """The same visitor gets the same place again; another finds the code spent."""
    sluice = start(top={"workers": [0, 1], "code_attempts": 100})
    one, other = visitor(sluice), visitor(sluice)
    for each in (one, other):
        each.get("/derby/")
    old = one.ticket()

    def again(code="7GQX-4TRM"):
        """As if the answer before had not come: with the ticket of before."""
        lost = visitor(sluice)
        lost.client.cookies.set("sluice-t-derby", old)
        answer = post(lost, code)
        found = re.search("sluice-t-derby=([^;]+)", answer.headers.get("set-cookie", ""))
        return answer.status_code, found and found.group(1)
    first = again()
    assert first[0] == 303 and first[1] != old
    place = token(first[1])["key"]
    for _ in range(3):
        status, ticket = again()
        assert status == 303 and token(ticket)["key"] == place
    sluice.kill()
    sluice.start()
    assert token(again()[1])["key"] == place, "a crash forgets nobody"
    # Whatever this visitor shows now, it is what they have got.
    assert token(again("K2M9-XW7P")[1])["key"] == place and used(sluice, "K2M9-XW7P") == 0
    assert used(sluice, "7GQX-4TRM") == 1
    assert reason(other, "7GQX-4TRM") == (403, "code_spent")
    # A page loaded with the old ticket leads to the new place.
    one.get("/derby/")
    assert token(one.ticket())["key"] == place and is_member(sluice, one)
    # At once, on several workers.
    old = other.ticket()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        both = list(pool.map(lambda _: again("K2M9-XW7P"), range(16)))
    assert len({token(ticket)["key"] for _, ticket in both}) == 1
    assert used(sluice, "K2M9-XW7P") == 1


def test_a_place_that_was_given_back_is_not_given_again(start, visitor):
    sluice = start()
    one = visitor(sluice)
    one.get("/derby/")
    cookies = dict(one.client.cookies)
    assert ask(one, "7GQX-4TRM")[0] == 200
    assert one.client.post("/.sluice/derby/leave").status_code == 204
    again = visitor(sluice)
    again.client.cookies.update(cookies)
    assert reason(again, "7GQX-4TRM") == (403, "code_spent")


def test_a_double_click_without_a_ticket(start, visitor):
    sluice = start(top={"code_attempts": 100})
    page = visitor(sluice).get(PAGE)
    once = number_of(page)
    assert once != number_of(visitor(sluice).get(PAGE))

    def click(number, code="7GQX-4TRM"):
        one = visitor(sluice)
        answer = one.client.post(PAGE, data={"code": code, "once": number})
        return answer.status_code, one.ticket() and token(one.ticket())["key"]
    first = click(once)
    assert first[0] == 303 and click(once) == first
    assert click(number_of(page)[::-1]) == (403, None), "another page is another visitor"
    assert click(once, "K2M9-XW7P")[1] != first[1], "a number alone is worth nothing"
    assert (used(sluice, "7GQX-4TRM"), used(sluice, "K2M9-XW7P")) == (1, 1)
    # Who has neither a ticket nor a page is nobody: lost is lost.
    assert click("")[0] == 403 and click("", "LATE-R2QD")[0] == 303
    assert click("", "LATE-R2QD")[0] == 403


def test_the_old_place_is_given_up(start, visitor):
    """One visitor, one place: those behind move up, and the old ticket is none any more."""
    sluice = start(capacity=1)
    visitor(sluice).get("/derby/")
    one, behind = visitor(sluice), visitor(sluice)
    for each in (one, behind):
        each.get("/derby/")
    old = one.ticket()
    sluice.cli("room", "derby", "pause")
    before = behind.status().json()["ahead"]
    assert post(one, "7GQX-4TRM").status_code == 303
    wait_for(lambda: sluice.show("room", "derby")["left"] == 1, 5)
    stale = visitor(sluice)
    stale.client.cookies.set("sluice-t-derby", old)
    assert stale.status().json()["state"] == "expired"
    assert behind.status().json()["ahead"] <= before
    assert one.status().json()["state"] == "waiting"


def test_expect_continue(start):
    """A body that waits to be asked for is asked for, or answered at once."""
    sluice = start()
    url = sluice.url(PAGE)

    def curl(*more):
        done = subprocess.run(["curl", "-sS", "-i", "-m", "5", "--expect100-timeout", "4",
                               "-H", "Host: localhost", "-H", "Expect: 100-continue", *more, url],
                              capture_output=True, text=True, check=True, timeout=15)
        return re.findall(r"^HTTP/1.1 (\d+)", done.stdout, re.M)
    began = time.time()
    assert curl("-d", "code=7GQX-4TRM") == ["100", "303"]
    assert curl("-d", "code=7GQX-4TRM") == ["100", "403"]
    assert curl("-d", "code=" + "x" * 2000) == ["413"]
    assert time.time() - began < 4
    head = (f"POST {PAGE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\n"
            "Expect: 100-continue\r\n\r\n")
    with sluice.connect() as sock:
        for _ in range(2):  # once for each request of a connection
            sock.sendall(head[:40].encode())
            time.sleep(0.05)
            sock.sendall(head[40:].encode())
            assert sock.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
            sock.sendall(b"code=AAA")
            time.sleep(0.05)
            sock.sendall(b"A-AAAA")
            got = sock.recv(65536)
            assert got.startswith(b"HTTP/1.1 403")
            while b"</html>" not in got:
                got += sock.recv(65536)


def test_what_was_spent_stays_spent(start, visitor):
    sluice = start()
    one = visitor(sluice)
    assert ask(one, "7GQX-4TRM")[0] == 200 and ask(visitor(sluice), "K2M9-XW7P")[0] == 200
    key = token(one.ticket())["key"]
    sluice.kill()
    sluice.start()
    assert reason(visitor(sluice), "7GQX-4TRM") == (403, "code_spent")
    assert used(sluice, "K2M9-XW7P") == 1
    assert one.status().json()["position"] == 1 and token(one.ticket())["key"] == key
    # The same list, another one, and the first again.
    assert rewrite(sluice, LIST + "# again\n").returncode == 0
    assert reason(visitor(sluice), "7GQX-4TRM") == (403, "code_spent")
    assert rewrite(sluice, "N3WC-0DE5\n").returncode == 0
    assert reason(visitor(sluice), "7GQX-4TRM") == (403, "code_unknown")
    assert ask(visitor(sluice), "N3WC-0DE5")[0] == 200
    assert rewrite(sluice, LIST).returncode == 0
    assert reason(visitor(sluice), "7GQX-4TRM") == (403, "code_spent")
    # A list with a mistake changes nothing.
    wrong = rewrite(sluice, LIST + "7gqx 4trm\n")
    assert wrong.returncode == 1 and "members.txt:5:1: the code of line 2 again" in wrong.stderr
    assert ask(visitor(sluice), "LATE-R2QD")[0] == 200
    # And who types for others can be helped.
    sluice.cli("lane", "code", "derby/members", "7GQX-4TRM", "again")
    rewrite(sluice, LIST)
    sluice.kill()
    sluice.start()
    assert ask(visitor(sluice), "7GQX-4TRM")[0] == 200
    assert "7gqx" not in sluice.read_log().lower()
    assert sluice.cli("lane", "code", "derby/press", "7GQX-4TRM", "again", check=False).returncode


def test_guessing(start, visitor):
    sluice = start(top={"workers": [0, 1], "code_attempts": 3})
    early_in_a_minute()
    assert ask(visitor(sluice), "7GQX-4TRM")[0] == 200  # a good one is no guess
    one = visitor(sluice)
    for code in ("AAAA-AAAA", "7GQX-4TRM", "BBBB-BBBB"):
        assert ask(visitor(sluice), code)[0] == 403
    answer = post(one, "K2M9-XW7P", headers=JSON)
    assert (answer.status_code, answer.json()["reason"]) == (429, "code_guarded")
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    page = post(one, "CCCC-CCCC")
    assert page.status_code == 429 and "wait a minute" in page.text
    assert used(sluice, "K2M9-XW7P") == 0 and counted(sluice)["code_guarded"] == 2
    # Another address is another source; a proxy that is believed says whose it is.
    sluice.config.update(trusted_proxies=[sluice.peer], code_attempts=1)
    sluice.write()
    sluice.cli("reload")
    for address in ("192.0.2.7", "2001:db8:0:100::1", "192.0.2.8, 2001:db8:0:200::1"):
        said = {"X-Forwarded-For": address, **JSON}
        wait_for(lambda: post(one, "AAAA", headers=said).status_code == 403, 5)
        assert post(one, "AAAA", headers=said).status_code == 429
    # The rest of a /56 is one source.
    said = {"X-Forwarded-For": "2001:db8:0:1ff::9", **JSON}
    assert post(one, "AAAA", headers=said).status_code == 429


HOSTILE = ["", " ", "-", "<script>alert(1)</script>", '"><img src=x>', "' OR 1=1 --",
           "7GQX-4TRM\n", "7GQX\r\nSet-Cookie: a=b", "7GQX\x00-4TRM", "%00", "%3Cscript%3E",
           "\u202e7GQX", "コード", "7GQX;4TRM", "7GQX_4TRM", "../7GQX", "A" * 49, "-" * 65,
           "{{code}}", "${7}", "`id`"]


def test_what_is_no_code(start, visitor):
    sluice = start()
    one = visitor(sluice)
    before = counted(sluice)
    for text in HOSTILE:
        assert reason(one, text) == (400, "code_invalid"), text
        page = post(one, text)
        assert page.status_code == 400 and "letters and digits only" in page.text
        assert not text.strip(" -") or text in page.request.content.decode() or "%" in text or \
            text not in page.text
        assert "set-cookie" not in page.headers
    for raw in (b"code=%", b"code=%4", b"code=%zz", b"code", b"code=\xff\xfe", b"%63ode=AAAA",
                b"\x00" * 500, b"&&&&", b"xcode=AAAA-AAAA"):
        answer = one.client.post(PAGE, content=raw, headers={**FORM, **JSON})
        assert (answer.status_code, answer.json()["reason"]) == (400, "code_invalid"), raw
    text = visitor(sluice).get(PAGE + "?code=%22%3E%3Cscript%3Ealert(1)").text
    assert "alert(1)" not in text
    after = counted(sluice)
    assert after["code_invalid"] - before["code_invalid"] == 2 * len(HOSTILE) + 9
    assert after["codes"] == before["codes"], "none of them costs control anything"
    assert not re.search("script|OR 1|SELECT", sluice.read_log())


def filled(size):
    """A form's body of that size with a code in it."""
    return b"code=AAAA-AAAA&x=" + b"x" * (size - 17)


def told_while_sending(sluice, body):
    """The answer to what is more than anybody reads: the rest may be refused by a reset."""
    head = (f"POST {PAGE} HTTP/1.1\r\nHost: localhost\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    with sluice.connect() as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(head.encode() + body)
        return sock.recv(65536)


def test_limits(start, visitor):
    sluice = start(top={"code_attempts": 100})
    one = visitor(sluice)
    form = {**FORM, **JSON}
    assert one.client.post(PAGE, content=filled(1024), headers=form).status_code == 403
    answer = one.client.post(PAGE, content=filled(1025), headers=form)
    assert (answer.status_code, answer.json()["reason"]) == (413, "code_long")
    assert told_while_sending(sluice, filled(1 << 20)).startswith(b"HTTP/1.1 413 ")
    answer = one.client.post(PAGE, content=iter([b"code=AAAA"]), headers=form)
    assert (answer.status_code, answer.json()["reason"]) == (411, "code_unsized")
    assert reason(one, "A" * 48) == (403, "code_unknown")
    assert reason(one, "A" * 48 + "-" * 16) == (403, "code_unknown")
    assert reason(one, "A" * 48 + "-" * 17) == (400, "code_invalid")
    now = counted(sluice)
    assert (now["code_long"], now["code_unsized"], now["code_unknown"]) == (2, 1, 3)
    # Another site's page may not make its visitors guess.
    for said in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        assert post(one, "7GQX-4TRM", headers=said).status_code == 403
    assert used(sluice, "7GQX-4TRM") == 0 and counted(sluice)["cross_site"] == 2


def test_a_body_in_pieces_and_what_follows_it(start):
    sluice = start()
    head = (f"POST {PAGE} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 14\r\n\r\n")
    following = "GET /.sluice/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with sluice.connect() as sock:
        for piece in (head[:30], head[30:] + "code=", "7GQX", "4TRM " + following):
            sock.sendall(piece.encode())
            time.sleep(0.05)
        got = b""
        while data := sock.recv(65536):
            got += data
    answers = re.findall(rb"HTTP/1.1 (\d+)", got)
    assert answers == [b"200", b"200"] and b'"state":"waiting"' in got and b'"version"' in got


def test_where_none_is_needed_none_is_spent(start, visitor):
    sluice = start(line_max=1)
    one = visitor(sluice)
    for word, state in (("close", "closed"), ("open", None)):
        sluice.cli("room", "derby", word)
        if state:
            assert ask(one, "7GQX-4TRM")[1]["state"] == state
    sluice.cli("room", "derby", "mode", "reject")
    assert ask(one, "7GQX-4TRM")[1]["state"] == "rejected"
    sluice.cli("room", "derby", "mode", "off")
    assert post(one, "7GQX-4TRM").status_code == 303
    sluice.cli("room", "derby", "mode", "always")
    assert used(sluice, "7GQX-4TRM") == 0
    # The line of the lane is full: nothing is spent.
    sluice.cli("room", "derby", "pause")
    assert ask(one, "7GQX-4TRM")[1]["state"] == "waiting"
    late = visitor(sluice)
    assert ask(late, "K2M9-XW7P")[1]["state"] == "full" and not late.ticket()
    wait_for(lambda: used(sluice, "K2M9-XW7P") == 0, 5)
    now = counted(sluice)
    assert (now["code_undone"], now["full"], now["closed"], now["rejected"]) == (0, 1, 1, 1)


def test_a_reload_of_many_codes_queues_nobody(start):
    """Lists are read in slices, and once: control is never away for so long that workers hold."""
    sluice = start(mode="auto", capacity=100000)
    before = sluice.show("room", "derby/members")["codes"]
    (sluice.folder / "members.txt").write_text(
        LIST + "".join(f"{i * 2654435761 % 2 ** 32:08X}{i:06X}\n" for i in range(300000)))
    reload = subprocess.Popen([BINARY, "reload", "-c", str(sluice.path)])
    came = 0
    while reload.poll() is None:
        answer = sluice.raw(b"GET /derby/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b"sluice-p-derby=" in answer, (came, answer)
        came += 1
    assert reload.returncode == 0 and came > 3
    assert sluice.show("room", "derby/members")["codes"] == before + 300000


def test_one_list_in_two_lanes(make):
    lanes = [{"name": "members", "codes": "members.txt"},
             {"name": "friends", "codes": "./members.txt"}]
    sluice = make(rooms=[room(lanes=lanes)], start=False)
    sluice.write()
    (sluice.folder / "members.txt").write_text(LIST)
    done = sluice.cli("check", check=False)
    assert done.returncode == 1 and "is the list of lane members too" in done.stderr + done.stdout


def test_a_list_is_checked(make):
    lanes = [{"name": "members", "codes": "members.txt"}]
    sluice = make(rooms=[room(lanes=lanes)], start=False)
    sluice.write()

    def check(codes):
        if codes is not None:
            (sluice.folder / "members.txt").write_bytes(codes)
        done = sluice.cli("check", check=False)
        return done.returncode, done.stdout + done.stderr
    status, said = check(None)
    assert status == 1 and "members.txt: No such file" in said
    assert re.search(r"sluice.yaml:\d+:\d+: sites.*codes: ", said)
    for codes, wrong in (
            (b"AAAA-AAA1\naaaaaaa1\n", ":2:1: the code of line 1 again; allowed: once"),
            (b"AAAA_AAA1\n", ":1:1: no code; allowed: 1 to 48 letters"),
            (b"# x\n\nAAAAAAA1, 0\n", ":3:1: no number of uses"),
            (b"AAAAAAA1, 1000001\n", ":1:1: no number of uses"),
            (b"sha256:00\n", ":1:1: no hash"),
            (b"A1\n", ":1:1: a code that is guessed soon (10 bits)"),
            (b"A" * 129 + b"\n", ":1:1: a line of 129 bytes"),
            (b"_\n" * 25, "members.txt: and 5 errors more")):
        status, said = check(codes)
        assert status == 1 and wrong in said, (codes, said)
    status, said = check(b"\xef\xbb\xbfAAAAA1\r\n")
    assert status == 0 and "warning: with 1 codes as short" not in said
    status, said = check(b"AAAA1\n")
    assert status == 0 and ":1:1: warning: with 1 codes as short as here" in said
