"""Claude Code pinned, and its project kept the same as the copy: what its file tools write
reaches the VM before each command, and what a command writes comes back."""
import json
import os
import subprocess

from drive import bash
from house import PIPES, cases, test

# A test of the project's, which tells what it was run on and leaves a report.
CHECK = "mkdir -p out && tr a-z A-Z <src/code.txt | tee out/report.txt; hostname >>out/report.txt"
ALLOW = {"permissions": {"allow": ["Bash", "Edit", "Read"]}}
OFF = json.dumps({"disableAllHooks": True})


def synced(world, name, turns, drift="sync", pipe="native", mode="redirect"):
    """A session whose project has one file and a copy that is the same."""
    session = world.session(name, turns, settings=ALLOW)
    session.boxery("pin", "dev-" + pipe, "--" + mode, "--drift", drift)
    session.write(os.path.join(session.project, "src/code.txt"), "one\n")
    session.boxery("sync", "dev-" + pipe)
    return session


def edit(session, old, new):
    path = os.path.join(session.project, "src/code.txt")
    return [{"call": "Read", "input": {"file_path": path}},
            {"call": "Edit", "input": {"file_path": path, "old_string": old, "new_string": new}}]


@cases("sync: what Edit writes is what the next command sees, and Read has what the command made ({0})", [(p,) for p in PIPES])
def _(world, pipe):
    session = synced(world, "sync-edit-" + pipe, [], pipe=pipe)
    session.turns = [*edit(session, "one", "two"), bash(CHECK), *edit(session, "two", "six"), bash(CHECK),
                     {"call": "Read", "input": {"file_path": os.path.join(session.project, "out/report.txt")}},
                     {"say": "done"}]
    session.go()
    results = session.results()
    assert not any(error for error, _ in results), results
    told = [text for _, text in results]
    assert told[2] == "TWO" and told[5] == "SIX", told
    assert "SIX" in told[6] and "dev-vm" in told[6], told[6]
    assert session.here("out/report.txt") == world.there(session, "out/report.txt") == "SIX\ndev-vm\n"


@test("sync: with `warn` the result begins with what is stale, and nothing is moved")
def _(world):
    session = synced(world, "sync-warn", [], drift="warn")
    session.turns = [*edit(session, "one", "two"), bash(CHECK), {"say": "done"}]
    session.go()
    error, told = session.results()[2]
    first = "boxery: the copy on dev-native isn't the same as the project: src/code.txt (1 newer on the laptop"
    assert not error and told.startswith(first) and told.endswith("ONE"), told
    assert session.here("out/report.txt") is None and world.there(session, "src/code.txt") == "one\n"


@test("sync: with `deny` nothing runs while the copy is stale, and the reason says what to do")
def _(world):
    session = synced(world, "sync-deny", [], drift="deny")
    session.turns = [*edit(session, "one", "two"), bash("touch ran"), {"say": "done"}]
    session.go()
    error, told = session.results()[2]
    assert error and "Exit code 125" in told and "src/code.txt" in told and "boxery sync dev-native" in told, told
    assert session.here("ran") is None and world.there(session, "ran") is None


@cases("sync: settings that would switch the hook off stay in the VM, and the next call runs there ({0})", [
    ("a command", "mkdir -p .claude && echo '%s' > .claude/settings.json" % OFF),
    ("a branch", "git checkout -q off && cat .claude/settings.json"),
    ("a link", "mkdir -p deep && echo '%s' > deep/settings.json && ln -s deep .claude" % OFF),
])
def _(world, what, command):
    session = synced(world, "sync-settings-" + what.split()[-1],
                     [bash(command), bash("hostname > ran; cat ran"), {"say": "done"}])
    if what == "a branch":
        # Made in the copy, as by a pull there: nothing on the laptop ever held the file.
        session.turns.insert(0, bash(
            "git init -q 2>/dev/null; git add -A && git -c user.name=x -c user.email=x@example.com commit -qm one; "
            "git checkout -q -b off && mkdir -p .claude && echo '%s' > .claude/settings.json && git add -A -f && "
            "git -c user.name=x -c user.email=x@example.com commit -qm off && git checkout -q -" % OFF))
    session.go()
    assert OFF in (world.there(session, ".claude/settings.json") or ""), session.results()
    assert session.here(".claude/settings.json") is None, session.results()
    assert not os.path.lexists(os.path.join(session.project, ".claude")) \
        or not os.path.islink(os.path.join(session.project, ".claude"))
    error, told = session.results()[-1]
    assert not error and "dev-vm" in told, session.results()
    assert world.there(session, "ran") == "dev-vm\n" and session.here("ran") == "dev-vm\n"


def git(session, *words):
    done = subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.com", *words], cwd=session.project,
                          env={"PATH": os.environ["PATH"], "HOME": session.home}, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def repository(world, name, turns):
    """A session whose project is a repository with one commit."""
    session = world.session(name, turns, settings=ALLOW)
    session.write(os.path.join(session.project, "src/code.txt"), "one\n")
    git(session, "init", "-q", "-b", "main")
    git(session, "add", "-A")
    git(session, "commit", "-qm", "one")
    session.boxery("pin", "dev-native", "--redirect", "--drift", "sync")
    return session


COMMIT = "git -c user.name=x -c user.email=x@example.com commit -qm "


@test("sync: a commit that a command makes is on the laptop's branch when it has ended")
def _(world):
    session = repository(world, "sync-commit", [bash("echo two > src/code.txt && git add -A && %s two" % COMMIT), {"say": "done"}])
    session.go()
    assert git(session, "log", "--format=%s", "main") == "two\none\n", session.results()
    assert git(session, "status", "--porcelain") == "" and session.here("src/code.txt") == "two\n"
    git(session, "fsck", "--strict")


@test("sync: a branch whose settings would switch the hook off can be checked out in the VM, and the next call runs there")
def _(world):
    session = repository(world, "sync-branch", [
        bash("git checkout -q -b off && mkdir -p .claude && echo '%s' > .claude/settings.json && git add -A && %s off" % (OFF, COMMIT)),
        bash("git checkout -q main && git checkout -q off && cat .claude/settings.json"),
        bash("hostname > ran; cat ran"), {"say": "done"}])
    session.go()
    results = session.results()
    assert OFF in results[1][1] and "dev-vm" in results[2][1], results
    assert session.here(".claude/settings.json") is None and session.here("ran") == "dev-vm\n", results
