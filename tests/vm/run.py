"""One pass of each scenario on a real Debian VM, as root and as an ordinary user, over both pipes.

    run.py BOXERY CACHE [--seed SEED] [--init fast] [--users USER,…] [SCENARIO …]
"""
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "rounds")]
import breaks  # noqa: E402
import commands  # noqa: E402
import life  # noqa: E402
import places  # noqa: E402
from machine import Machine  # noqa: E402

# Each is done over both pipes.
OVER_A_PIPE = (
    commands.exact, commands.words, commands.time_out, commands.ended_by_signals, commands.environment, commands.agents_calls,
    breaks.killed, breaks.cut, breaks.asleep, breaks.crowd, breaks.jobs,
    places.seeded, places.copied, places.same_path, places.shell, places.forwarded, places.offered,
    life.examined,
)


class Pass:
    """Which scenarios are wanted, and how they went."""

    def __init__(self, place, wanted):
        self.place, self.wanted, self.passed, self.failed = place, wanted, 0, 0

    def one(self, scenario, *arguments, always=False):
        if self.wanted and scenario.__name__ not in self.wanted and not always:
            return
        start, name = time.monotonic(), " ".join((scenario.__name__, self.place.user or "", *arguments))
        try:
            scenario(self.place, *arguments)
        except Exception:
            self.failed += 1
            traceback.print_exc()
            print("FAILED  %s: %s (%.1f s)" % (name, scenario.__doc__, time.monotonic() - start), flush=True)
            self.place.tidy()
        else:
            self.passed += 1
            print("ok      %s: %s (%.1f s)" % (name, scenario.__doc__, time.monotonic() - start), flush=True)

    def user(self, name):
        """Everything that one user of the VM does."""
        self.place.become(name)
        self.place.before = self.place.everything()
        for pipe in ("native", "system"):
            self.one(commands.added, pipe, always=True)
        for scenario in OVER_A_PIPE:
            for pipe in ("native", "system"):
                self.one(scenario, pipe)


def main():
    arguments, seed, init, users = sys.argv[1:], random.randrange(1 << 32), "systemd", ["root", "dev"]
    if len(arguments) < 2:
        raise SystemExit(__doc__.strip())
    boxery, cache, wanted = os.path.abspath(arguments.pop(0)), os.path.abspath(arguments.pop(0)), []
    while arguments:
        word = arguments.pop(0)
        if word == "--seed":
            seed = int(arguments.pop(0))
        elif word == "--init":
            init = arguments.pop(0)
        elif word == "--users":
            users = arguments.pop(0).split(",")
        else:
            wanted.append(word)
    start = time.monotonic()
    subprocess.run([os.path.join(HERE, "image.sh"), cache], check=True)
    print("seed %d; the image is there after %.0f s" % (seed, time.monotonic() - start), flush=True)
    with tempfile.TemporaryDirectory(prefix="round-", dir=cache) as folder:
        start = time.monotonic()
        with Machine(folder, boxery, cache, init) as place:
            place.seed = seed
            print("the VM is up after %.0f s" % (time.monotonic() - start), flush=True)
            the_pass = Pass(place, wanted)
            for user in users:
                the_pass.user(user)
            if init == "systemd":
                the_pass.one(breaks.rebooted)
            the_pass.one(life.left)
            place.become("root")
            for pipe in ("native", "system"):
                the_pass.one(commands.added, pipe, always=True)
            the_pass.one(life.renewed)
            the_pass.one(life.left)
    print("%d passed, %d failed" % (the_pass.passed, the_pass.failed))
    sys.exit(1 if the_pass.failed else 0)


main()
