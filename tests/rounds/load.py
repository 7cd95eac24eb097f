"""Many connections, many runs, one that nobody reads."""
import contextlib
import os
import signal
import statistics
import subprocess
import time

from place import Place, eventually, gone

MIB = 1 << 20


def held(place):
    """Memory in KiB and open files of the daemon and the helpers."""
    daemon, helpers = place.daemon(), place.helpers()
    return ((daemon.memory() or 0, daemon.files()), max((p.memory() or 0, p.files()) for p in helpers))


def cycles(folder, boxery, rng, count):
    """Connections that come and go leave one helper, and daemon and helper don't grow"""
    with Place(folder, boxery) as place:
        def run(pipe):
            client = place.run(pipe, "exit 7")
            assert client.wait() == 7, client.said()

        early = None
        warm = min(count // 4, 100)
        for number in range(count):
            pipe = rng.choice(("native", "system"))
            run(pipe)
            if number == warm:
                early = held(place)
            # what ends a connection: either side, its process on either side
            how = rng.choice(("laptop", "vm", "session", "ssh" if pipe == "system" else "session"))
            known = {line.split()[2] for line in place.connections() if how != "ssh" or '"ssh"' in line}
            if how in ("laptop", "vm"):
                place.reset(how)
            else:
                found = place.sessions() if how == "session" else [p for p in place.on_laptop() if p.argv[:1] == ["ssh"]]
                for process in found:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGKILL)
            # whoever looked after the run's ports may have made another one since
            gone("cycle %d (%s): a connection" % (number, how),
                 lambda: [line for line in place.connections() if line.split()[2] in known])
        gone("after the cycles, a connection", lambda: place.reset() or place.connections())
        gone("after the cycles, a helper", place.helpers)
        run("native")
        late = held(place)
        helpers = place.helpers()
        assert len(helpers) == 1, helpers
        assert not place.of_runs(), place.of_runs()
        (daemon, files), (helper, helper_files) = early
        (daemon_late, files_late), (helper_late, helper_files_late) = late
        assert daemon_late < daemon * 1.25 + 2048, "the daemon grew from %d to %d KiB" % (daemon, daemon_late)
        assert helper_late < helper * 1.25 + 1024, "the helper grew from %d to %d KiB" % (helper, helper_late)
        # the first figures may lack the other pipe's
        assert files_late <= files + 16 and helper_files_late <= helper_files + 4, (early, late)
        left = sum("/helper-" in name for name in place.files("vm"))
        assert left == 1, place.files("vm")
    return "daemon %.1f MiB after %d cycles and %.1f at the end, helper %.1f and %.1f" % (
        daemon / 1024, warm, daemon_late / 1024, helper / 1024, helper_late / 1024)


def crowd(folder, boxery, rng, count):
    """Runs at once over one connection, on a server that allows one session"""
    said = []
    with Place(folder, boxery, sshd_lines="MaxSessions 1") as place:
        for pipe in ("native", "system"):
            start = time.monotonic()
            clients = [place.run(pipe, "echo %d; seq %d; echo %d >&2; exit %d" % (n, 1000 + n, n, n)) for n in range(count)]
            for n, client in enumerate(clients):
                assert client.wait() == n, (n, client.said())
                lines = [n, *range(1, 1001 + n)]
                assert bytes(client.out) == b"".join(b"%d\n" % line for line in lines), (n, bytes(client.out[:200]))
                assert bytes(client.err) == b"%d\n" % n, (n, bytes(client.err))
            said.append("%s %.1f s" % (pipe, time.monotonic() - start))
            assert len(place.sessions()) <= 2 * len(said), place.sessions()
        assert len(place.helpers()) == 2, place.helpers()
    return ", ".join(said)


def stalled(folder, boxery, rng, count):
    """One run with 200 MiB of output that nobody reads, while `true` stays quick"""
    said = []
    with Place(folder, boxery) as place:
        for pipe in ("native", "system"):
            def true():
                start = time.monotonic()
                client = place.run(pipe, "true")
                assert client.process.wait(60) == 0
                took = time.monotonic() - start
                client.wait()
                return took * 1000
            true()
            alone = statistics.median(true() for _ in range(count))
            command = place.command("run", pipe, "--cwd", "/", "--", "head", "-c", str(200 * MIB), "/dev/zero")
            unread = subprocess.Popen(command, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL)
            assert os.read(unread.stdout.fileno(), 1) == b"\0"
            # until everything on the way is full
            eventually("the command waits", lambda: any(p.name == "head" and p.state == "S" for p in place.in_vm()))
            beside = statistics.median(true() for _ in range(count))
            # a machine that is busy with other things is slow alone, too
            assert beside < max(50, 2.5 * alone), "`true` took %.0f ms beside a stalled reader, %.0f ms alone" % (beside, alone)
            received = 1
            while chunk := os.read(unread.stdout.fileno(), MIB):
                received += len(chunk)
            assert (unread.wait(), received) == (0, 200 * MIB)
            said.append("%s %.1f ms, alone %.1f" % (pipe, beside, alone))
    return "; ".join(said)
