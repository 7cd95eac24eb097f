"""kill -9 of whoever carries a run, at random points.

A killed client ends its run at once, with nothing left on the VM. Whoever else is killed
(daemon, ssh, the server's session, helper), the client goes on at the very byte, its exit
status is exact, and the command has run once. Who is killed before the run was asked for
may also make the client fail, and then it has not run at all.
"""
import os
import sys

from place import BROKE, Place, eventually, gone, pause

VICTIMS = {"native": ("client", "daemon", "session", "helper"),
           "system": ("client", "daemon", "ssh", "session", "helper")}
# For the client as for the daemon: MiB.
MEMORY = 64


def numbers(count):
    return b"".join(b"%d\n" % n for n in range(1, count + 1))


def victims(place, client, name):
    """The processes to kill, as far as they are there."""
    if name == "client":
        return [client.process.pid]
    if name == "daemon":
        daemon = place.daemon()
        return [daemon.pid] if daemon else []
    if name == "ssh":
        return [p.pid for p in place.on_laptop() if p.argv[:1] == ["ssh"]]
    return [p.pid for p in (place.sessions() if name == "session" else place.helpers())]


def one(place, number, pipe, victim, rng, tally):
    lines, status = rng.randrange(20_000, 300_000), rng.randrange(256)
    expected = numbers(lines)
    both_ways = rng.random() < 0.4
    token = "86%d.%06d" % (os.getpid(), number)
    at_byte = rng.randrange(1, len(expected)) if rng.random() < 0.7 else None
    after = rng.random() * 0.25
    what = "run %d over %s: %s killed %s, %s" % (
        number, pipe, victim, "at byte %d" % at_byte if at_byte else "after %.0f ms" % (after * 1000),
        "both ways" if both_ways else "down")
    text = "echo %d >>$HOME/ran; " % number
    if at_byte is None:
        # so that there is a time to be killed in
        text += "sleep 0.15; "
    copy = "cat; " if both_ways else "seq 1 %d; " % lines
    if victim == "client":
        text += "sleep %s & (setsid sleep %s &) ; %s wait" % (token, token, copy)
    else:
        text += "%s exit %d" % (copy, status)
    killed = []

    def kill():
        if not killed:
            killed.append(victims(place, client, victim))
            place.kill(victim, killed[0])

    ready = []
    client = place.run(pipe, text, feed=expected if both_ways else None,
                       on_byte=lambda length: at_byte and length >= at_byte and ready and kill())
    ready.append(True)
    if at_byte is None:
        pause(after)
        kill()
    elif victim == "client":
        eventually(what + ": the byte", lambda: killed or client.process.poll() is not None)
    code = client.wait()
    kill()
    ran = place.read("vm/ran").split().count(str(number))
    if victim == "client":
        assert code in (-9, -13) or not killed[0], "%s: status %d, %s" % (what, code, client.said())
        assert expected.startswith(bytes(client.out)), what + ": bytes were lost or doubled"
        took = gone(what, place.of_runs, 10)
        tally["longest end"] = max(tally.get("longest end", 0), took)
        assert place.read("vm/ran").split().count(str(number)) <= 1, what + ": ran twice"
        tally["client"] = tally.get("client", 0) + 1
        return
    if code == 125 and ran == 0 and not client.out:
        # it was killed while the way was being opened: told, and nothing was run
        assert client.said(), what + ": failed without a word"
        tally["failed before it began"] = tally.get("failed before it began", 0) + 1
        return
    assert code == status, "%s: status %d, not %d; it ran %d times; %s" % (what, code, status, ran, client.said())
    assert bytes(client.out) == expected, "%s: bytes were lost or doubled: %d of %d" % (what, len(client.out), len(expected))
    assert ran == 1, "%s: it ran %d times" % (what, ran)
    assert client.said() in ([], [BROKE % pipe]), "%s: said %s" % (what, client.said())
    tally[victim] = tally.get(victim, 0) + 1
    tally["went on"] = tally.get("went on", 0) + len(client.said())
    gone(what, place.of_runs, 10)


def kills(folder, boxery, rng, count):
    """kill -9 of client, daemon, ssh, the server's session and helper at random points"""
    tally, most = {}, 0
    pairs = [(pipe, victim) for pipe in VICTIMS for victim in VICTIMS[pipe]]
    rng.shuffle(pairs)
    with Place(folder, boxery) as place:
        place.write("vm/ran", "")
        for number in range(1, count + 1):
            try:
                one(place, number, *pairs[number % len(pairs)], rng, tally)
            except AssertionError:
                print("laptop:", *place.on_laptop()[2:], "VM:", *place.in_vm()[2:], place.status(), sep="\n  ", file=sys.stderr)
                raise
            daemon = place.daemon()
            held = [p.memory() or 0 for p in place.helpers() + ([daemon] if daemon else [])]
            most = max([most, *held])
        assert most < MEMORY * 1024, "daemon or helper held %d KiB" % most
        assert place.boxery_says("daemon", "stop")[0] in (0, 1)
        # what killed owners left is swept once it isn't young
        for name in os.listdir(place.at("tmp")):
            os.utime(os.path.join(place.at("tmp"), name), (0, 0))
        for pipe in VICTIMS:
            client = place.run(pipe, "exit 9")
            assert client.wait() == 9, client.said()
        eventually("at most one helper a connection", lambda: len(place.helpers()) <= 2)
        assert place.boxery_says("daemon", "stop")[0] == 0
        gone("after the rounds, on the VM", lambda: place.helpers() + place.sessions() + place.of_runs())
        gone("after the rounds, on the laptop", lambda: place.on_laptop()[2:])
        kept = [name for name in place.files("vm")
                if name != "ran" and "/helper-" not in name and not name.endswith("/done")]
        assert not kept, "files left on the VM: %s" % kept
        assert sum("/helper-" in name for name in place.files("vm")) == 1, place.files("vm")
        assert not os.listdir(place.at("tmp")), "files left on the laptop: %s" % os.listdir(place.at("tmp"))
    tally["a killed client's run was gone after at most"] = "%.2f s" % tally.pop("longest end", 0)
    return "%s; daemon and helper at most %.1f MiB" % (", ".join("%s %s" % pair for pair in sorted(tally.items())), most / 1024)
