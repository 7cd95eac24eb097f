"""The link is cut and restored in the middle of numbered bytes, down and both ways.

A cut is a reset (both ends are told), a short silence (TCP gets over it), or a long one
(only the keepalive finds it). No byte may be lost or doubled, and no connection may be
taken for alive longer than the keepalive allows.
"""
import threading

from kills import numbers
from place import BROKE, Place, eventually, gone, pause



def keepalive(interval, times):
    """As a user's ssh configuration would say it; the default is every 15 s, three times."""
    return "ServerAliveInterval %d\nServerAliveCountMax %d" % (interval, times)


def budget(interval, times):
    """The last sign of life, the unanswered ones, and the next tick, at which it is noticed."""
    return interval * (times + 2)


KEEPALIVE, BUDGET = keepalive(1, 2), budget(1, 2)
# Beyond it: what a loaded machine adds.
SLACK = 2.0
KINDS = ("reset by the laptop", "reset by the VM", "short silence", "long silence")


def cut(place, kind, rng, tally, limit):
    if kind.startswith("reset"):
        place.reset("laptop" if kind.endswith("laptop") else "vm")
        return
    place.link(False)
    if kind == "short silence":
        pause(0.05 + rng.random() * 0.6)
    else:
        took = gone("a dead connection", place.connections, limit + SLACK)
        tally["found after at most"] = max(tally.get("found after at most", 0), took)
    place.link(True)


def one(place, number, rng, size, tally, kinds=KINDS, pipes=("native", "system"), most=3, limit=BUDGET):
    pipe, both_ways, status = rng.choice(pipes), rng.random() < 0.4, rng.randrange(256)
    kinds = [rng.choice(kinds) for _ in range(rng.randrange(1, most + 1))]
    expected = numbers(size // 8)
    points = sorted(rng.randrange(1, len(expected)) for _ in kinds)
    what = "run %d over %s, %s: %s at bytes %s" % (number, pipe, "both ways" if both_ways else "down", kinds, points)
    text = "echo %d >>$HOME/ran; %s; exit %d" % (number, "cat" if both_ways else "seq 1 %d" % (size // 8), status)
    due, done, reached = list(points), threading.Event(), threading.Event()

    def on_byte(length):
        # the reader stops here until the link is back, so that the cut is in the middle
        if due and length >= due[0]:
            due.pop(0)
            done.clear()
            reached.set()
            done.wait(60)

    client = place.run(pipe, text, feed=expected if both_ways else None, on_byte=on_byte)
    try:
        for kind in kinds:
            assert reached.wait(60), what + ": no bytes"
            reached.clear()
            if rng.random() < 0.5:
                # bytes go on while it is cut
                done.set()
            cut(place, kind, rng, tally, limit)
            done.set()
    finally:
        due.clear()
        done.set()
        place.link(True)
    code = client.wait(120)
    assert code == status, "%s: status %d, not %d: %s" % (what, code, status, client.said())
    assert bytes(client.out) == expected, "%s: bytes were lost or doubled: %d of %d" % (what, len(client.out), len(expected))
    assert place.read("vm/ran").split().count(str(number)) == 1, what + ": it didn't run once"
    assert client.said() in ([], [BROKE % pipe]), "%s: said %s" % (what, client.said())
    for kind in kinds:
        tally[kind] = tally.get(kind, 0) + 1
    tally["told of it"] = tally.get("told of it", 0) + len(client.said())


def cuts(folder, boxery, rng, count, size=50 << 20):
    """The link cut and restored in the middle of 50 MiB of numbered output, no byte lost or doubled"""
    tally = {}
    with Place(folder, boxery, ssh_lines=KEEPALIVE) as place:
        place.write("vm/ran", "")
        for number in range(1, count + 1):
            one(place, number, rng, size, tally)
        gone("after the rounds, a command", lambda: [p for p in place.of_runs() if p.argv[1:2] != ["supervise"]], 10)
        # a link that was dead when the end had just come: the VM keeps that end for the grace
        tally["ends not acknowledged"] = len(place.of_runs())
    if "found after at most" in tally:
        tally["found after at most"] = "%.1f s of %d" % (tally["found after at most"], BUDGET)
    return ", ".join("%s %s" % pair for pair in sorted(tally.items()))


def few_cuts(folder, boxery, rng, count):
    """The same with 4 MiB"""
    return cuts(folder, boxery, rng, count, 4 << 20)


def silence(folder, boxery, rng, count):
    """A connection that is dead and says nothing is found within the default keepalive, whichever way bytes go"""
    longest = 0
    with Place(folder, boxery) as place:
        for number in range(count):
            for pipe in ("native", "system"):
                for feed in (None, b"x" * (64 << 20)):
                    client = place.run(pipe, "cat >/dev/null; echo ended" if feed else "echo began; sleep 5; echo ended", feed=feed)
                    eventually("it is connected", place.connections)
                    if feed is None:
                        eventually("it began", lambda: bytes(client.out) == b"began\n")
                    pause(0.3)
                    place.link(False)
                    took = gone("a dead connection (%s)" % pipe, place.connections, 15 * 5 + 5)
                    longest = max(longest, took)
                    place.link(True)
                    assert client.wait() == 0, client.said()
                    assert bytes(client.out).endswith(b"ended\n"), client.out
    return "found after at most %.1f s" % longest


