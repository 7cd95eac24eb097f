"""When boxery itself fails while something is pinned, nothing runs here."""
import os
import shutil
import signal
import subprocess
import sys
import threading

import drive
from drive import bash
from house import cases, test


def own_binary(world, name, turns, **more):
    """A session whose hook entry names a copy of the binary, so that it can be broken."""
    session = world.session(name, turns, **more)
    session.binary = session.path("bin/boxery")
    os.makedirs(session.path("bin"))
    # By a program of its own: a child that another test forks meanwhile would hold the
    # copy open for writing, and a file that is can't be started.
    subprocess.run(["cp", drive.BOXERY, session.binary], check=True)
    session.boxery("hook", "uninstall", "claude-code")
    session.boxery("hook", "install", "claude-code")
    return session


def break_binary(session, fault):
    if fault == "missing":
        os.unlink(session.binary)
    elif fault == "mode":
        # root may run no file without any x bit
        os.chmod(session.binary, 0o644)
    else:
        script = {
            "kill": "kill -9 $$",
            "segv": "kill -SEGV $$",
            "abort": "echo 'half an answ'; kill -ABRT $$",
            "exit-1": "exit 1",
            "exit-127": "exit 127",
            "garbage": "head -c 100 /dev/zero; exit 3",
            # the agent waits for the shell; the shell waits for us
            "kill-shell": "kill -9 $PPID",
            "hang": "exec tail -f /dev/null",
        }[fault]
        # never write into the file that a running hook may have open
        os.unlink(session.binary)
        with open(session.binary, "w") as f:
            f.write("#!/bin/sh\n" + script + "\n")
        os.chmod(session.binary, 0o755)


FAULTS = [
    ("is missing", "missing"), ("is not executable", "mode"), ("is killed with SIGKILL", "kill"),
    ("crashes", "segv"), ("aborts in the middle of its answer", "abort"), ("ends with 1", "exit-1"),
    ("ends with 127", "exit-127"), ("prints garbage and fails", "garbage")]


@cases("pinned ({1}): a boxery that {2} denies", [
    (fault, mode, what) for what, fault in FAULTS for mode in ("guard", "redirect")])
def _(world, fault, mode, _what):
    session = own_binary(world, "broken-%s-%s" % (fault, mode), [bash("touch ran"), {"say": "done"}])
    session.boxery("pin", "dev-native", "--" + mode, "--drift", "off")
    break_binary(session, fault)
    session.go()
    assert session.here("ran") is None, session.results()
    (error, told), = session.results()
    assert error and "boxery" in told, told


@cases("pinned by BOXERY_VM: a boxery that {1} denies", [(f, w) for w, f in FAULTS])
def _(world, fault, _what):
    session = own_binary(world, "broken-env-" + fault, [bash("touch ran"), {"say": "done"}])
    session.env["BOXERY_VM"] = "dev-native"
    break_binary(session, fault)
    session.go()
    assert session.here("ran") is None, session.results()


def spoil(session, how):
    folder = os.path.join(session.state, "pins")
    names = [os.path.join(folder, n) for n in os.listdir(folder) if not n.endswith(".lock")]
    assert names, "no pin file in " + folder
    for path in names:
        with open(path, "rb") as f:
            old = f.read()
        new = {"empty": b"", "cut": old[:len(old) // 2], "garbage": b"\x00\xff garbage", "newer": old.replace(b'"version":', b'"version":9', 1),
               "other": old.replace(b"dev-native", b"nobody")}.get(how)
        if how == "folder":
            os.unlink(path)
            os.mkdir(path)
        elif how == "link":
            os.unlink(path)
            os.symlink("/nonexistent/pin", path)
        elif how == "loop":
            os.unlink(path)
            os.symlink(path, path)
        elif how == "fifo":
            os.unlink(path)
            os.mkfifo(path)
        else:
            assert new != old, how
            with open(path, "wb") as f:
                f.write(new)


@cases("a pin file that is spoilt ({0}) denies", [
    ("empty",), ("cut",), ("garbage",), ("newer",), ("other",), ("folder",), ("link",), ("loop",), ("fifo",)])
def _(world, how):
    session = world.session("spoilt-" + how, [bash("touch ran"), {"say": "done"}])
    session.boxery("pin", "dev-native", "--guard", "--drift", "off")
    spoil(session, how)
    session.go()
    assert session.here("ran") is None, session.results()
    (error, told), = session.results()
    assert error and "boxery" in told, told


@cases("a configuration that is spoilt ({0}) denies while pinned", [("garbage",), ("unknown key",), ("missing",)])
def _(world, how):
    session = world.session("config-" + how.replace(" ", "-"), [bash("touch ran"), {"say": "done"}])
    session.boxery("pin", "dev-native", "--redirect", "--drift", "off")
    path = os.path.join(session.home, ".config/boxery/config.toml")
    if how == "missing":
        os.unlink(path)
    else:
        with open(path, "a") as f:
            f.write("\n[[[" if how == "garbage" else "\n[vm.x]\ntarget = 'u@h'\ndir = '/x'\nnonsense = 1\n")
    session.go()
    assert session.here("ran") is None, session.results()


class HungMount:
    """A folder of boxery's state on a FUSE file system that never answers."""

    def __init__(self, session, kind, folder="pins"):
        self.folder = os.path.join(session.state, folder)
        self.kind = kind

    def __enter__(self):
        os.makedirs(self.folder, exist_ok=True)
        self.daemon = subprocess.Popen([sys.executable, os.path.join(drive.HERE, "hung_mount.py"), self.folder, self.kind],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.daemon.stdout.readline() == "mounted\n"
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], check=True)
        self.daemon.stdin.close()
        self.daemon.wait()


@cases("a pin on a FUSE mount that never answers ({0}, {1}) is never local", [
    (kind, mode) for kind in ("deaf", "mute") for mode in ("guard", "redirect")])
def _(world, kind, mode):
    session = world.session("fuse-%s-%s" % (kind, mode), [bash("touch ran"), {"say": "done"}], timeout=150)
    session.boxery("pin", "dev-native", "--" + mode, "--drift", "off")
    with HungMount(session, kind):
        session.go()
    assert session.here("ran") is None, session.results()
    (error, told), = session.results()
    assert error and "boxery" in told, told


@cases("pinned ({0}): a boxery that is killed while it decides denies", [("guard",), ("redirect",)])
def _(world, mode):
    session = own_binary(world, "killed-at-work-" + mode, [bash("touch ran"), {"say": "done"}])
    session.boxery("pin", "dev-native", "--" + mode, "--drift", "off")
    killed, over = [], threading.Event()

    def kill_every_hook():
        while not over.is_set():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    if os.readlink("/proc/%s/exe" % pid) == session.binary:
                        os.kill(int(pid), signal.SIGKILL)
                        killed.append(pid)
                except OSError:
                    pass  # it has ended by itself

    # Where the record doesn't answer it works long enough to be caught.
    with HungMount(session, "deaf", "log"):
        killer = threading.Thread(target=kill_every_hook)
        killer.start()
        try:
            session.go()
        finally:
            over.set()
            killer.join()
    assert killed and session.here("ran") is None, session.results()
    (error, told), = session.results()
    assert error and "boxery" in told, told


@test("redirect: a VM that can't be reached fails with 125 and runs nothing here")
def _(world):
    session = world.session("gone-vm", [bash("touch ran"), {"say": "done"}])
    session.boxery("pin", "dev-native", "--redirect", "--drift", "off")
    path = os.path.join(session.home, ".config/boxery/config.toml")
    with open(path) as f:
        text = f.read()
    with open(path, "w") as f:
        f.write(text.replace(":%d" % world.vm.port, ":9"))
    session.go()
    (error, told), = session.results()
    assert error and told.startswith("Exit code 125"), told
    assert session.here("ran") is None


@test("redirect: without a proof for this agent it is denied and told, and nothing runs here")
def _(world):
    session = world.session("unproven", [bash("touch ran"), {"say": "done"}])
    session.boxery("pin", "dev-native", "--redirect", "--drift", "off")
    shutil.rmtree(os.path.join(session.state, "proofs"))
    session.go()
    (error, told), = session.results()
    assert error and "hook prove" in told, told
    assert session.here("ran") is None and world.there(session, "ran") is None


@test("redirect: another hook that rewrites the shell tool turns the call into guard, by name")
def _(world):
    session = world.session("second-rewriter", [bash("touch ran"), {"say": "done"}])
    session.boxery("pin", "dev-native", "--redirect", "--drift", "off")
    other = session.path("rewriter.sh")
    session.write(other, "#!/bin/sh\ncat >/dev/null\necho '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\","
                         "\"updatedInput\":{\"command\":\"touch ran\"}}}'\n")
    os.chmod(other, 0o755)
    session.write(os.path.join(session.project, ".claude/settings.json"), {
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": other}]}]}})
    session.go()
    (error, told), = session.results()
    assert error and "rewriter.sh" in told, told
    assert session.here("ran") is None
