"""What the ASTF profiles share: tunables, the heads that a browser sends, tickets, and templates.

A program of ASTF sends fixed bytes and counts what comes; it cannot read a cookie. So pages and
tickets have nothing to do with each other here: tickets are drawn before, by bench/profiles/draw.
"""
import argparse

from trex.astf.api import ASTFAssociationRule, ASTFGlobalInfo, ASTFIPGen, ASTFIPGenDist, \
    ASTFIPGenGlobal, ASTFProfile, ASTFProgram, ASTFTCPClientTemplate, ASTFTCPServerTemplate, \
    ASTFTemplate

FOREVER = 1_000_000_000  # turns of a loop: until the run ends
KEEPALIVE_S = 253  # the longest of all versions: the appliance ends idle connections, not TRex
BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
                  "Chrome/126.0.0.0 Safari/537.36",
    "Accept-Encoding": "gzip, deflate, br",
    "Accept-Language": "en-US,en;q=0.9",
}
NAVIGATION = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document",
}
SCRIPT = {
    "Accept": "application/json",
    "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty",
}


def tunables(description):
    """A parser with those that all profiles have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--server", default="192.0.2.10", help="the appliance's address")
    parser.add_argument("--port", type=int, default=80)
    parser.add_argument("--host", help="one of the site's hosts; default: the address")
    parser.add_argument("--page", default="/derby/", help="a path of the room")
    parser.add_argument("--clients", default="192.0.2.32-192.0.2.254",
                        help="the addresses that visitors come from")
    return parser


def add_tickets(parser):
    parser.add_argument("--tickets", required=True,
                        help="a file with a cookie a line, by bench/profiles/draw")


def head(options, path, *fields):
    lines = [f"GET {path} HTTP/1.1", f"Host: {options.host or options.server}"]
    for some in (BROWSER, *fields):
        lines += [f"{name}: {value}" for name, value in some.items()]
    return "\r\n".join(lines) + "\r\n\r\n"


def page(options, *fields):
    return head(options, options.page, NAVIGATION, *fields)


def polls(options):
    """A status poll for each ticket of the file."""
    with open(options.tickets, encoding="ascii") as file:
        cookies = file.read().split()
    if not cookies:
        raise ValueError(f"{options.tickets}: no tickets")
    rooms = [cookie.partition("=")[0][len("sluice-t-"):] for cookie in cookies]
    return [head(options, f"/.sluice/{room}/status", SCRIPT, {"Cookie": cookie})
            for room, cookie in zip(rooms, cookies)]


def begin_loop(program):
    """end_loop() comes back here.

    Some versions land one command behind the label, so there stands one that may be left out.
    """
    program.set_var("left", FOREVER)
    program.set_label("again")
    program.set_var("landed", 1)


def end_loop(program):
    program.jmp_nz("left", "again")


def ask(program, request):
    """Send it, and wait for the answer, which comes in one segment and whose length varies."""
    program.send(request)
    program.recv(1, True)


def profile(options, programs, rate, connections=None):
    """Connections that follow these programs in turn.

    rate: of them in a second, times what `start -m` says; connections: no more than so many.
    """
    visitors = ASTFIPGen(
        glob=ASTFIPGenGlobal(ip_offset="1.0.0.0"),
        dist_client=ASTFIPGenDist(ip_range=options.clients.split("-"), distribution="seq"),
        dist_server=ASTFIPGenDist(ip_range=[options.server, options.server], distribution="seq"))
    if connections is not None:
        programs = programs[:connections]
    templates = [template(options, visitors, program, index, rate / len(programs),
                          share_of(connections, len(programs), index))
                 for index, program in enumerate(programs)]
    patient = ASTFGlobalInfo()
    patient.tcp.keepinit = patient.tcp.keepidle = patient.tcp.keepintvl = KEEPALIVE_S
    return ASTFProfile(default_ip_gen=visitors, default_c_glob_info=patient, templates=templates)


def share_of(connections, count, index):
    if connections is None:
        return None
    return connections // count + (index < connections % count)


def template(options, visitors, program, index, rate, limit):
    """One program of visitors.

    ASTF wants a server for each, and no two on one port. It is never asked: the appliance answers.
    """
    never = ASTFProgram()
    never.recv(1)
    return ASTFTemplate(
        client_template=ASTFTCPClientTemplate(
            program=program, ip_gen=visitors, port=options.port, cps=rate, limit=limit),
        server_template=ASTFTCPServerTemplate(
            program=never, assoc=ASTFAssociationRule(port=1 + index)))
