"""Asks the shop how many are inside, ten times a second, until ended: a line for each answer.

    seconds of CLOCK_MONOTONIC, sessions ever, inside now, inside at most, requests after an end
"""
import http.client
import json
import sys
import time

EVERY_S = 0.1


def main():
    link = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=5)
    while True:
        link.request("GET", "/stats")
        stats = json.loads(link.getresponse().read())
        print(time.monotonic(), stats["sessions"], stats["inside"], stats["inside_max"],
              stats["after_end"], flush=True)
        time.sleep(EVERY_S)


main()
