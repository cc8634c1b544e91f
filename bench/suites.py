"""Runs the suites, prints their figures and keeps them in build/bench/report.json."""
import json
import os
import signal
import sys

import suite_crowd
import suite_peers
import suite_polls
import suite_tls
from world import BUILD, Failure

SUITES = {"crowd": suite_crowd, "peers": suite_peers, "polls": suite_polls, "tls": suite_tls}
REPORT = BUILD / "bench" / "report.json"

# Figures with something to reach: how the value compares, and with what.
TO_REACH = {
    "crowd.rate_error": ("<", 0.05),
    "crowd.inversions": ("<=", 0),
    "crowd.sessions_max": ("<=", suite_crowd.CAPACITY),
    "crowd.lost": ("<=", 0),
    "peers.cpu_ratio_64": (">=", 1.25),
    "peers.cpu_ratio_512": (">=", 1.25),
    "peers.rss_growth_kb": ("<", 1024),
    "polls.cycles_mac": ("<=", 1800),
    "polls.cycles_remembered": ("<=", 1300),
    "polls.cycles_connection": ("<=", 4500),
    "polls.cycles_syn": ("<=", 600),
    "polls.bytes_per_idle_connection": ("<=", 256),
    "polls.cpu_ratio_nginx": (">=", 12),
    "tls.cpu_ratio_handshake": (">=", 1),
}


def merge(figures):
    """Replace these figures in the report; all others stay."""
    report = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    report.update(figures)
    fresh = REPORT.with_suffix(".new")
    fresh.write_text(json.dumps(report, indent=1, sort_keys=True) + "\n")
    os.replace(fresh, REPORT)


def verdict(name, value):
    if name not in TO_REACH:
        return ""
    relation, bound = TO_REACH[name]
    holds = {"<": value < bound, "<=": value <= bound, ">=": value >= bound}[relation]
    return f"{'ok' if holds else 'MISSED'}: to be {relation} {bound}"


def print_table(figures):
    """Those with something to reach first."""
    for name in sorted(figures, key=lambda name: (name not in TO_REACH, name)):
        print(f"{name:36} {figures[name]:>14.6g}  {verdict(name, figures[name])}".rstrip())


def main():
    name, as_json = sys.argv[1], "--json" in sys.argv[2:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unwinds, which ends what was started
    figures, failed = {}, False
    for suite in SUITES if name == "all" else [name]:
        print(f"bench/run: {suite}: {SUITES[suite].TAKES}", file=sys.stderr)
        try:
            taken = {f"{suite}.{key}": value for key, value in SUITES[suite].run().items()}
        except Failure as failure:
            print(f"bench/run: {suite}: {failure}", file=sys.stderr)
            failed = True
            continue
        merge(taken)
        figures.update(taken)
    if as_json:
        print(json.dumps(figures, sort_keys=True))
    else:
        print_table(figures)
    return int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(1)
