"""Whoever carries a run is killed, the link is cut, the VM sleeps or is rebooted."""
import json
import random

import cuts
import kills
from commands import token
from kills import VICTIMS, numbers
from load import MIB
from place import BROKE, eventually, gone

# An emulated VM may take seconds to answer.
ALIVE = (5, 2)


def killed(place, pipe):
    """kill -9 of client, daemon, ssh, session and helper in the middle of a run"""
    rng, tally = random.Random(place.seed), {}
    place.write("vm/ran", "")
    for number, victim in enumerate(VICTIMS[pipe]):
        kills.one(place, number, pipe, victim, rng, tally)
    place.sh("rm %s/ran" % place.home())


def cut(place, pipe):
    """The link is cut and restored in the middle of numbered bytes"""
    rng, tally = random.Random(place.seed), {}
    place.keepalive(cuts.keepalive(*ALIVE))
    place.write("vm/ran", "")
    for number, kind in enumerate(cuts.KINDS):
        cuts.one(place, number, rng, 2 * MIB, tally, [kind], [pipe], 1, cuts.budget(*ALIVE))
    place.sh("rm %s/ran" % place.home())
    place.keepalive("")


def asleep(place, pipe):
    """The VM sleeps in the middle of a run, for longer than any keepalive"""
    place.keepalive(cuts.keepalive(*ALIVE))
    reached = []
    client = place.run(pipe, "seq 1 50000; sleep 1; seq 50001 100000; exit 5", on_byte=reached.append)
    eventually("output", lambda: reached)
    with place.suspended():
        gone("a dead connection", place.connections, cuts.budget(*ALIVE) + cuts.SLACK)
    code = client.wait()
    assert (code, bytes(client.out)) == (5, numbers(100_000)), (code, len(client.out), client.said())
    assert client.said() in ([], [BROKE % pipe]), client.said()
    place.keepalive("")


def crowd(place, pipe):
    """50 runs at once over one connection, on a server that allows one session"""
    place.boxery_says("daemon", "stop")
    place.serve_by("MaxSessions 1")
    clients = [place.run(pipe, "echo %d; seq %d; echo %d >&2; exit %d" % (n, 1000 + n, n, n)) for n in range(50)]
    for n, client in enumerate(clients):
        assert client.wait() == n, (n, client.said())
        assert bytes(client.out) == b"%d\n" % n + numbers(1000 + n), (n, bytes(client.out[:200]))
        assert bytes(client.err) == b"%d\n" % n, (n, bytes(client.err))
    assert len(place.helpers()) == 1, place.helpers()
    place.serve_by("")


def jobs(place, pipe):
    """A job outlives its connection, and every session of its user"""
    sleeper = token(place)
    text = "for n in 1 2 3 4 5; do echo $n; done; echo err >&2; touch went; until [ -e go ]; do sleep 0.2; done; echo more; exit 5"
    place.sh("rm -f %s/go %s/went" % (place.home(), place.home()))
    out, _ = place.says("jobs", "start", pipe, "--cwd", place.home(), "--", "bash", "-c", text)
    job = out.strip()
    out, _ = place.says("jobs", "start", pipe, "--cwd", "/", "--", "bash", "-c",
                        "(setsid sleep %s &) ; trap '' TERM; sleep %s; sleep %s" % (sleeper, sleeper, sleeper))
    other = out.strip()
    eventually("it began", lambda: place.sh("ls %s" % place.home()).count("went"))
    place.boxery_says("daemon", "stop")
    # half-open ones of links that were cut, too
    place.kill("session", [process.pid for process in place.sessions()])
    gone("its sessions", place.sessions)
    place.says("jobs", "list", pipe, holds=(job[:8], "runs"))
    place.sh("touch %s/go" % place.home())
    assert place.says("jobs", "tail", "-f", job[:8], pipe) == ("1\n2\n3\n4\n5\nmore\n", "err\n")
    place.says("jobs", "wait", job, pipe, status=5)
    place.says("jobs", "list", pipe, holds=("ended with 5",))
    place.says("jobs", "stop", other[:8], pipe, holds=("stopped",))
    assert not place.escaped(sleeper), place.escaped(sleeper)
    place.says("jobs", "wait", other, pipe, status=143)
    place.sh("rm -f %s/go %s/went" % (place.home(), place.home()))


def rebooted(place):
    """The VM is rebooted: jobs that ended keep their end, those that ran are said to be lost, and nothing runs twice"""
    place.write("vm/ran", "")
    text = "echo %s >>$HOME/ran; echo out; exec sleep 1000"
    out, _ = place.says("jobs", "start", "native", "--cwd", "/", "--", "bash", "-c", "echo kept; exit 6")
    done = out.strip()
    place.says("jobs", "wait", done, "native", status=6)
    out, _ = place.says("jobs", "start", "native", "--cwd", "/", "--", "bash", "-c", text % "job")
    ran = out.strip()
    clients = {pipe: place.run(pipe, text % pipe) for pipe in ("native", "system")}
    eventually("all began", lambda: place.read("vm/ran").split().count("job") and all(
        bytes(client.out) == b"out\n" for client in clients.values()))
    place.restart()
    for pipe, client in clients.items():
        code, said = client.wait(), client.said()
        # the shell may be seen to go before the VM does
        ends = ("the VM was restarted while the command ran", "ended without a status")
        assert code == 125 and len(said) == 1 and any(end in said[0] for end in ends), (pipe, code, said)
    out, _ = place.says("jobs", "list", "native", "--json")
    states = {job["job"]: (job["state"], job["running"]) for job in json.loads(out)}
    assert states[done] == ("ended with 6", False) and states[ran] == ("lost: the VM was restarted", False), states
    place.says("jobs", "wait", done, "native", status=6)
    assert place.says("jobs", "tail", done, "native")[0] == "kept\n"
    place.says("jobs", "wait", ran, "native", status=125, holds=("the VM was restarted while the command ran",))
    assert place.says("jobs", "tail", ran, "native") == ("out\n", "")
    for pipe in ("native", "system"):
        assert place.says("run", pipe, "--cwd", "/", "--", "echo", "back")[0] == "back\n"
    assert sorted(place.read("vm/ran").split()) == ["job", "native", "system"]
    place.sh("rm %s/ran" % place.home())
