"""Rounds of faults on the way to a real OpenSSH server in namespaces of its own.

    run.py BOXERY [--seed SEED] [ROUND=COUNT …]

Without rounds: a small part of each. The seed decides every random choice and is printed.
"""
import os
import random
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cuts import cuts, few_cuts, silence  # noqa: E402
from daemon import daemon  # noqa: E402
from edits import builds, edits  # noqa: E402
from kills import kills  # noqa: E402
from load import crowd, cycles, stalled  # noqa: E402

# The round and how much of it is the small part.
ROUNDS = {
    "kills": (kills, 12),
    "few_cuts": (few_cuts, 6),
    "cycles": (cycles, 20),
    "crowd": (crowd, 50),
    "stalled": (stalled, 11),
    "daemon": (daemon, 1),
    "edits": (edits, 20),
    "builds": (builds, 2),
    "cuts": (cuts, 0),
    "silence": (silence, 0),
}


def main():
    arguments = sys.argv[1:]
    if not arguments:
        raise SystemExit(__doc__.strip())
    # Every program of a round is told apart by its whole path.
    boxery, seed, chosen = os.path.abspath(arguments.pop(0)), random.randrange(1 << 32), {}
    while arguments:
        word = arguments.pop(0)
        if word == "--seed":
            seed = int(arguments.pop(0))
            continue
        name, _, count = word.partition("=")
        if name not in ROUNDS:
            raise SystemExit("error: no round is named `%s`\nhint: known rounds: %s" % (name, " ".join(ROUNDS)))
        chosen[name] = int(count or ROUNDS[name][1])
    chosen = chosen or {name: count for name, (_, count) in ROUNDS.items() if count}
    passed = failed = 0
    for name, count in chosen.items():
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="boxery-round-") as folder:
            try:
                said = ROUNDS[name][0](folder, boxery, random.Random("%d %s" % (seed, name)), count)
                passed += 1
                print("ok      %s=%d: %s" % (name, count, said), end="")
            except Exception:
                failed += 1
                traceback.print_exc()
                print("FAILED  %s=%d --seed %d" % (name, count, seed), end="")
        print(" (seed %d, %.0f s)" % (seed, time.monotonic() - start), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(1 if failed else 0)


main()
