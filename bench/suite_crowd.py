"""crowd: 15,000 people in one second in front of a room that lets 100 a second in.

Each shops for a second and ends its session by leaving, or by buying, to which the shop answers
`Sluice-Command: end`. What must hold: nobody is lost, nobody is overtaken who held no reservation,
the shop never sees more than the capacity, and the rate is met while people wait.
"""
import json
import subprocess

from world import BUILD, Failure, HOST, ending_with_us, folder, shop, sluice

TAKES = "takes about three minutes"
VISITORS = 15000
CAPACITY = 400
RATE = 100
SESSION_S = 5
LIMIT_S = 300  # twice what it takes
QUICK = {"VISITORS": 300}


def run():
    room = {"capacity": CAPACITY, "rate": f"{RATE}/s", "session": f"{SESSION_S}s"}
    with folder() as at, shop(at, "--session", SESSION_S) as shop_port, \
            sluice(at, shop_port, room, VISITORS + 1000) as appliance:
        crowd = crowd_seen(appliance.port, shop_port)
        counters = appliance.show("room", "derby")
    crowd["sessions_max"] = crowd.pop("shop_sessions_max")
    crowd["sessions_max_held"] = counters["sessions_max_seen"]
    yield crowd


def crowd_seen(port, shop_port):
    command = [BUILD / "bench/crowd", "--target", f"{HOST}:{port}", "--shop-port", shop_port,
               "--visitors", VISITORS, "--shape", "step", "--over", 1, "--shop", 1,
               "--leave", "mixed", "--rate", RATE, "--capacity", CAPACITY,
               "--seconds", LIMIT_S, "--json"]
    run = subprocess.run(ending_with_us(command), stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, text=True, timeout=LIMIT_S + 60)
    if run.returncode != 0:
        raise Failure("the crowd failed")
    seen = json.loads(run.stdout)
    if "shop_sessions_max" not in seen or "rate_error" not in seen:
        raise Failure(f"the crowd saw too little: {seen}")
    return seen
