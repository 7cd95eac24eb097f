"""The daemon among sleeps, newer builds, leftovers, many starters and other users."""
import os
import shutil
import signal
import socket
import subprocess
import time

from cuts import KEEPALIVE
from kills import numbers
from place import BROKE, Place, eventually, gone, pause


def signal_all(processes, number):
    for process in processes:
        os.kill(process.pid, number)


def slept(place, pipe, dies):
    """A laptop that sleeps in the middle of a run; meanwhile the server may give up."""
    expected = numbers(300_000)
    reached = []
    client = place.run(pipe, "seq 1 150000; sleep 1; seq 150001 300000; exit 5", on_byte=reached.append)
    eventually("output", lambda: reached)
    asleep = [p for p in place.on_laptop() if p.argv and p.argv[0] in (place.boxery, "ssh")]
    assert len(asleep) >= 2, asleep
    signal_all(asleep, signal.SIGSTOP)
    # longer than every keepalive of both sides
    pause(5 if not dies else 1)
    if dies:
        place.link(False)
        signal_all(place.sessions(), signal.SIGKILL)
        # what the network would have said is said while nobody listens
        gone("the session", place.sessions)
        place.link(True)
    signal_all(asleep, signal.SIGCONT)
    code = client.wait(60)
    assert (code, bytes(client.out)) == (5, expected), (pipe, dies, code, len(client.out), client.said())
    assert client.said() in ([], [BROKE % pipe]), client.said()


def hand_over(place, boxery, generations):
    """Newer builds come while runs are on."""
    clients, builds, before = [], [boxery], []
    for number in range(generations):
        # a build is its file: a copy that was made later is a newer one
        newer = place.at("boxery-%d" % number)
        shutil.copy(boxery, newer)
        builds.append(newer)
    for number, build in enumerate(builds):
        reached = []
        client = place.run("native", "seq 1 1000; sleep 2; seq 1001 2000; exit %d" % number, program=build, on_byte=reached.append)
        eventually("it began", lambda: reached)
        daemon = [p for p in place.on_laptop() if p.argv[1:3] == ["daemon", "serve"] and p.argv[0] == build]
        assert len(daemon) == 1, place.on_laptop()
        clients.append(client)
        before += daemon
    for number, client in enumerate(clients):
        assert client.wait(60) == number, client.said()
        assert (bytes(client.out), client.said()) == (numbers(2000), []), (number, client.said())
    old = {p.pid for p in before[:-1]}
    gone("the daemons of older builds", lambda: [p for p in place.on_laptop() if p.pid in old])
    assert place.status()["pid"] == before[-1].pid
    # an older build works, by itself
    client = place.run("native", "exit 3", program=boxery)
    assert client.wait() == 3, client.said()
    assert place.status()["pid"] == before[-1].pid
    return builds[-1]


def started_by_many(place, count):
    """Whoever comes first starts it, and only one is started."""
    clients = [place.run("native", "echo $PPID; exit %d" % n) for n in range(count)]
    for n, client in enumerate(clients):
        assert client.wait() == n, client.said()
    serving = [p for p in place.on_laptop() if p.argv[1:3] == ["daemon", "serve"]]
    assert len(serving) == 1, serving
    # all over its one connection
    assert len(place.helpers()) == 1, place.helpers()


def leftovers(place):
    """A killed daemon's socket and lock are in nobody's way."""
    daemon = place.daemon()
    os.kill(daemon.pid, signal.SIGKILL)
    gone("the daemon", place.daemon)
    assert os.path.exists(place.at("laptop/.local/state/boxery/daemon/s"))
    assert place.boxery_says("daemon", "status")[0] == 1
    client = place.run("native", "exit 4")
    assert client.wait() == 4, client.said()
    assert place.daemon() is not None


def other_users(place):
    """The daemon hears only its own user, and a client speaks only to its own user's."""
    state = place.at("laptop/.local/state/boxery/daemon")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    ask = ("import socket,sys; s=socket.socket(socket.AF_UNIX); s.settimeout(10)\n"
           "try: s.connect(sys.argv[1])\nexcept OSError as e: print(type(e).__name__); sys.exit()\n"
           "t=b'{\"build\":{\"made\":0,\"size\":0,\"inode\":0},\"wish\":\"status\"}'\n"
           "s.sendall(len(t).to_bytes(4,'big')+t); print(s.recv(100))")

    def asked(*user):
        command = [*place.enter("laptop"), *user, "/usr/bin/python3", "-c", ask, state + "/s"]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    assert "status" in asked(), "its own user is not answered"
    assert asked(*nobody) == "PermissionError", asked(*nobody)
    # even where the folders let them in
    opened = [place.folder, *(place.at(name) for name in ("laptop", "laptop/.local", "laptop/.local/state",
                                                           "laptop/.local/state/boxery")), state]
    modes = {path: os.stat(path).st_mode for path in opened}
    for path in opened:
        os.chmod(path, 0o777)
    os.chmod(state + "/s", 0o777)
    assert asked(*nobody) in ("b''", ""), asked(*nobody)
    for path, mode in modes.items():
        os.chmod(path, mode)
    place.boxery_says("daemon", "stop")
    # a socket of somebody else's in the daemon's place
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(state + "/s")
    listener.close()
    os.unlink(state + "/s")
    serve = ("import socket,sys; s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print('up',flush=True)\n"
             "while True: c,_=s.accept(); print(c.recv(1000), flush=True)")
    os.chmod(state, 0o777)
    for path in opened[:-1]:
        os.chmod(path, 0o711)
    false = subprocess.Popen([*place.enter("laptop"), *nobody, "/usr/bin/python3", "-c", serve, state + "/s"],
                             stdout=subprocess.PIPE, text=True)
    assert false.stdout.readline() == "up\n"
    code, out, err = place.boxery_says("daemon", "status")
    assert code != 0 and "another user" in out + err, (code, out, err)
    client = place.run("native", "exit 6")
    assert client.wait() == 6, client.said()
    false.kill()
    heard, _ = false.communicate()
    assert "build" not in heard, heard
    for path, mode in modes.items():
        os.chmod(path, mode)
    os.unlink(state + "/s")


def daemon(folder, boxery, rng, count):
    """Sleep, newer builds, leftovers, many starters, other users"""
    lines = "ClientAliveInterval 1\nClientAliveCountMax 2"
    with Place(folder, boxery, sshd_lines=lines, ssh_lines=KEEPALIVE) as place:
        start = time.monotonic()
        started_by_many(place, 20)
        leftovers(place)
        for _ in range(count):
            for pipe in ("native", "system"):
                for dies in (False, True):
                    slept(place, pipe, dies)
        other_users(place)
        hand_over(place, boxery, 2)
        return "all in %.0f s" % (time.monotonic() - start)
