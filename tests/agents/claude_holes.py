"""What Claude Code itself leaves open: each test shows a hole of docs/security.md still open.

A test that fails here means that the agent has closed a hole: then its row goes.
"""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import drive
from claude_failures import break_binary, own_binary
from drive import bash
from house import cases, test


def pinned(world, name, fault=None, mode="guard"):
    session = own_binary(world, name, [bash("touch ran"), {"say": "done"}])
    session.boxery("pin", "dev-native", "--" + mode, "--drift", "off")
    if fault:
        break_binary(session, fault)
    return session


@test("hole: a killed hook shell lets the call run here")
def _(world):
    session = pinned(world, "hole-kill-shell", "kill-shell").go()
    assert session.here("ran") == "", session.results()


@test("hole: the agent's own hook time-out lets the call run here")
def _(world):
    session = pinned(world, "hole-timeout", "hang").go()
    assert session.here("ran") == "", session.results()


@test("hole: disableAllHooks in the project's settings lets the call run here")
def _(world):
    session = pinned(world, "hole-disable-all")
    session.write(os.path.join(session.project, ".claude/settings.json"), {"disableAllHooks": True})
    session.go()
    assert session.here("ran") == "", session.results()


@test("hole: a comment in the user's settings file drops the hooks")
def _(world):
    session = pinned(world, "hole-comment")
    path = os.path.join(session.home, ".claude/settings.json")
    with open(path) as f:
        text = f.read()
    session.write(path, "// a comment\n" + text)
    session.go()
    assert session.here("ran") == "", session.results()


@cases("hole: `claude {0}` runs no hooks", [("--bare",), ("--setting-sources project",)])
def _(world, flags):
    session = pinned(world, "hole-" + flags.split()[0].strip("-"))
    session.args = flags.split()
    session.go()
    assert session.here("ran") == "", session.results()


def terminal(session, lines, until, seconds=60):
    """Claude's own terminal interface: type each (wait for, text), stop when `until()` holds."""
    session.write(os.path.join(session.home, ".claude.json"), {
        "hasCompletedOnboarding": True, "lastOnboardingVersion": "99.0.0", "theme": "dark", "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": ["sk-ant-fake"], "rejected": []},
        "projects": {session.project: {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}}})
    env = dict(session.start_model(), TERM="xterm-256color")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen([drive.CLAUDE, "--dangerously-skip-permissions"], env=env, cwd=session.project, stdin=slave,
                               stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    seen, end, todo = b"", time.monotonic() + seconds, list(lines)
    try:
        while time.monotonic() < end and not until():
            if not select.select([master], [], [], 0.2)[0]:
                # the screen has come to rest
                if todo and todo[0][0] in seen:
                    os.write(master, todo.pop(0)[1])
                continue
            try:
                seen += os.read(master, 65536)
            except OSError:
                break
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(master)
        session.stop_model()
    return seen


@test("hole: a line that the user types after `!` runs here")
def _(world):
    session = pinned(world, "hole-bang")
    seen = terminal(session, [("\u276f".encode(), b"!"), (b"for shell mode", b"touch ran"), (b"ran", b"\r")],
                    lambda: session.here("ran") is not None)
    assert session.here("ran") == "", seen[-3000:]


@test("hole: settings that someone empties while a session runs take the hook with them")
def _(world):
    session = pinned(world, "hole-emptied")
    path = os.path.join(session.home, ".claude/settings.json")
    session.turns = [bash("touch ran-1"), {"say": "done"}]
    session.go()
    assert session.here("ran-1") is None
    session.write(path, {})
    session.turns = [bash("touch ran-2"), {"say": "done"}]
    session.go()
    assert session.here("ran-2") == "", session.results()
    assert json.load(open(path)) == {}
