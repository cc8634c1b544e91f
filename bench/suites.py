"""Runs the suites, prints their figures and keeps them in build/bench/report.json.

A suite is a module: TAKES says how long, run() yields its figures as they are taken, and QUICK has
smaller values for some of its constants, with which everything is tried and nothing is measured.
"""
import contextlib
import json
import os
import signal
import sys
import traceback

import suite_cluster
import suite_crowd
import suite_draw
import suite_peers
import suite_polls
import suite_tls
from world import BUILD, Failure

SUITES = {"cluster": suite_cluster, "crowd": suite_crowd, "draw": suite_draw,
          "peers": suite_peers, "polls": suite_polls, "tls": suite_tls}
REPORT = BUILD / "bench" / "report.json"

# Figures with something to reach: how the value compares, and with what.
TO_REACH = {
    "cluster.admitted_over": ("<=", 0),
    "cluster.lost": ("<=", 0),
    "cluster.propagation_p99_ms": ("<=", 50),
    "cluster.takeover_s": ("<=", 3),
    "cluster.step_arrivals_overtaken": ("<=", 0),
    "cluster.step_places_double": ("<=", 0),
    "cluster.step_positions_worse": ("<=", 0),
    "cluster.step_second_over": ("<=", 0),
    "cluster.step_minute_over": ("<=", 0),
    "crowd.rate_error": ("<", 0.05),
    "crowd.inversions": ("<=", 0),
    "crowd.sessions_max": ("<=", suite_crowd.CAPACITY),
    "crowd.lost": ("<=", 0),
    "draw.placed_s": ("<=", 1),
    "draw.peak_over_mean": ("<=", 2),
    "draw.longest_turn_cycles": ("<=", 2.5e6),
    "draw.chi_square": ("<=", 1144),
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
    "tls.cpu_ratio_handshake_dpdk": (">=", 1),
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


def taken_by(suite):
    """The figures of a suite as they come, and whether that was all of them."""
    figures = {}
    try:
        with contextlib.closing(SUITES[suite].run()) as parts:
            for part in parts:
                figures.update({f"{suite}.{key}": value for key, value in part.items()})
    except Failure as failure:
        print(f"bench/run: {suite}: {failure}", file=sys.stderr)
        return figures, False
    except Exception:  # of our own making: the other suites can do without
        traceback.print_exc()
        return figures, False
    return figures, True


def end_on(*signals):
    """They unwind, which ends what was started."""
    for number in signals:
        signal.signal(number, lambda *_: sys.exit(1))


def main():
    name, options = sys.argv[1], sys.argv[2:]
    is_quick = "--quick" in options
    end_on(signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    figures, is_whole = {}, True
    if is_quick:
        for suite in SUITES.values():  # of all, since one uses what another has
            vars(suite).update(getattr(suite, "QUICK", {}))
    for suite in SUITES if name == "all" else [name]:
        if not is_quick:
            print(f"bench/run: {suite}: {SUITES[suite].TAKES}", file=sys.stderr)
        taken, is_all = taken_by(suite)
        if not is_quick:
            merge(taken)
        figures.update(taken)
        is_whole &= is_all
    if "--json" in options:
        print(json.dumps(figures, sort_keys=True))
    else:
        print_table(figures)
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
