"""house: what the tests share: the list of tests, and a laptop with boxery set up.

    @test("guard denies a local shell call")
    def _(world): ...

    @cases("redirect keeps text {0}", rows)
    def _(world, *row): ...
"""
import json
import os
import re
import shutil

import drive
from drive import Claude
from vm import Vm

TESTS = []


class Test:
    def __init__(self, name, function, row=()):
        self.name, self.function, self.row = name, function, row

    def run(self, world):
        self.function(world, *self.row)


def test(name):
    def add(function):
        TESTS.append(Test(name, function))
        return function
    return add


def cases(name, rows):
    """One test a row; `{0}` in the name is the row's first field."""
    def add(function):
        for row in rows:
            TESTS.append(Test(name.format(*row), function, row))
        return function
    return add


PIPES = ["native", "system"]


class World:
    """A VM behind a real sshd, and a home folder in which boxery knows it under two
    names, `dev-native` and `dev-system`, one for each pipe, with redirect proven."""

    def __enter__(self):
        shutil.rmtree(drive.RUNS, ignore_errors=True)
        self.folder = os.path.join(drive.RUNS, "world")
        os.makedirs(os.path.join(self.folder, "vm"))
        self.vm = Vm(os.path.join(self.folder, "vm"), hide=drive.RUNS).__enter__()
        self.dir = self.vm.home + "/copies"
        try:
            self.set_up()
        except BaseException:
            self.vm.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.vm.__exit__()

    def set_up(self):
        first = Claude("setup", [])
        first.env["SSH_AUTH_SOCK"] = self.vm.auth_sock
        for pipe in PIPES:
            first.boxery("vm", "add", "dev-" + pipe, self.vm.target, "--dir", self.dir,
                         "--accept-fingerprint", self.vm.fingerprint)
            self.set_pipe(first, "dev-" + pipe, pipe)
        first.env["PATH"] = os.path.dirname(drive.CLAUDE) + ":" + drive.BARE["PATH"]
        first.boxery("hook", "install", "claude-code")
        for mode in ("default", "bypassPermissions"):
            first.boxery("hook", "prove", "claude-code", "--permission-mode", mode)
        self.home = first.home

    @staticmethod
    def set_pipe(session, vm, pipe):
        path = os.path.join(session.home, ".config/boxery/config.toml")
        with open(path) as f:
            text = f.read()
        head = re.search(r"^\[vm\.\"?%s\"?\]\n" % re.escape(vm), text, re.M)
        assert head, "no table of %s in %s" % (vm, text)
        with open(path, "w") as f:
            f.write(text[:head.end()] + 'pipe = "%s"\n' % pipe + text[head.end():])

    def session(self, name, turns, settings=None, **more):
        """A Claude on a laptop where all is set up and nothing is pinned. `settings` are
        the user's own; boxery's entry stands in them."""
        session = Claude(name, turns, home_from=self.home, **more)
        session.env.update(SSH_AUTH_SOCK=self.vm.auth_sock,
                           PATH=os.path.dirname(drive.CLAUDE) + ":" + drive.BARE["PATH"])
        if settings is not None:
            path = os.path.join(session.home, ".claude/settings.json")
            with open(path) as f:
                merged = json.load(f)
            merged.update(settings)
            session.write(path, merged)
        return session

    def plain(self, name, turns, settings=None, **more):
        """A Claude on a laptop that never heard of boxery."""
        return Claude(name, turns, settings=settings or {}, **more)

    def copy_of(self, session):
        """The folder of the session's project on the VM, as this side sees it."""
        base = self.vm.see(self.dir)
        names = os.listdir(base) if os.path.isdir(base) else []
        found = [n for n in names if re.fullmatch(re.escape(session.name) + "-[0-9a-f]{8}", n)]
        assert len(found) < 2, found
        return os.path.join(base, found[0]) if found else None

    def ran(self, session):
        """The texts that the VM's bash got as its one argument in the session's copy."""
        copy = self.copy_of(session)
        if copy is None:
            return []
        inside = self.dir + "/" + os.path.basename(copy)
        return [c["argv"][-1] for c in self.vm.commands()
                if c["argv"][:-1] in (["-c"], ["-c", "--"]) and (c["cwd"] + "/").startswith(inside + "/")]

    def there(self, session, name):
        """The content of a file in the session's copy on the VM, or None."""
        copy = self.copy_of(session)
        if copy is None or not os.path.exists(os.path.join(copy, name)):
            return None
        with open(os.path.join(copy, name)) as f:
            return f.read()
