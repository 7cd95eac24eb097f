"""drive: run the real Claude Code, headless, against fakemodel, on loopback only.

    enter_namespaces()                     # re-executes the program where nothing but lo exists
    c = Claude("deny", [{"call": "Bash", "input": {...}}, {"say": "done"}])
    c.boxery("pin", "dev")                 # the user's own verbs, in this session's home
    c.go()                                 # -> c.rc, c.out, c.err, c.results()

Each Claude has a folder of its own, RUNS/name, with home/, name/ (the project), requests.jsonl,
stdout and stderr; it is wiped at the start and kept at the end. The environment is
built from nothing: PATH, HOME, LANG, TERM, TMPDIR and what Claude needs, with a fake key.
"""
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
ROOT = os.environ.get("AGENTS_ROOT") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", "/root"), ".cache"), "boxery-agents")
RUNS = os.path.join(ROOT, "runs")
CLAUDE = os.path.join(ROOT, "npm/claude/node_modules/.bin/claude")
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(REPOSITORY, "target"))
BOXERY = os.environ.get("BOXERY_BINARY", os.path.join(TARGET, "debug/boxery"))
BARE = {"SHELL": "/bin/bash", "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "TERM": "dumb"}

INIT = """
mount --make-rprivate / && ip link set lo up || exit 125
if [ -d "$PASSWD_HOME/.ssh" ]; then mount -t tmpfs tmpfs "$PASSWD_HOME/.ssh"; fi
exec "$@"
"""


def enter_namespaces():
    """Go on in network, mount and process namespaces of our own: nothing but 127.0.0.1
    exists, the user's own ~/.ssh is hidden, and whatever we start ends with us."""
    if os.environ.get("DRIVE_INSIDE") == "1":
        return
    if os.getuid() != 0:
        raise SystemExit("missing: root (the real agents are driven in namespaces beside an sshd of their own)")
    env = dict(os.environ, DRIVE_INSIDE="1", PASSWD_HOME=pwd.getpwuid(0).pw_dir)
    os.execvpe("unshare", ["unshare", "-n", "-m", "-p", "-f", "--mount-proc", "--kill-child=KILL", "sh", "-c", INIT, "sh",
                           sys.executable] + sys.argv, env)


def read_jsonl(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


def bash(command, **more):
    """A turn that calls the shell tool."""
    return {"call": "Bash", "input": dict({"command": command, "description": "d"}, **more)}


class Claude:
    """One session: a home, a project, a script for the model."""

    def __init__(self, name, turns, permission="bypassPermissions", settings=None, home_from=None, binary=BOXERY,
                 prompt="MAIN please do the scripted work", timeout=120):
        self.name, self.turns, self.permission, self.prompt, self.timeout = name, turns, permission, prompt, timeout
        self.dir = os.path.join(RUNS, name)
        shutil.rmtree(self.dir, ignore_errors=True)
        self.home, self.project = self.path("home"), self.path(name)
        self.state = os.path.join(self.home, ".local/state/boxery")
        os.makedirs(self.dir)
        if home_from:
            shutil.copytree(home_from, self.home, symlinks=True)
        for folder in (self.home, self.project, self.path("tmp")):
            os.makedirs(folder, exist_ok=True)
        self.env, self.args, self.binary, self.start = {}, [], binary, self.project
        if settings is not None:
            self.write(os.path.join(self.home, ".claude/settings.json"), settings)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def write(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text if isinstance(text, str) else json.dumps(text, indent=2))

    def full_env(self):
        return dict(BARE, HOME=self.home, TMPDIR=self.path("tmp"), **self.env)

    def boxery(self, *words, check=True, stdin="", cwd=None, env=None):
        """One of boxery's verbs, as the user would type it in the project."""
        done = subprocess.run([self.binary, *words], input=stdin, capture_output=True, text=True, timeout=120,
                              cwd=cwd or self.project, env=dict(self.full_env(), **(env or {})))
        if check and done.returncode != 0:
            raise AssertionError("boxery %s: status %s\n%s%s" % (" ".join(words), done.returncode, done.stdout, done.stderr))
        return done

    def hook(self, event, check=True, **fields):
        """What the endpoint answers to one event, outside any session."""
        payload = dict({"session_id": "00000000-0000-4000-8000-000000000000", "transcript_path": "/dev/null",
                        "cwd": self.project, "permission_mode": self.permission, "hook_event_name": event}, **fields)
        return self.boxery("hook", "run", "claude-code", stdin=json.dumps(payload), check=check,
                           env={"CLAUDE_PROJECT_DIR": self.project})

    def command_line(self):
        args = ["-p", self.prompt]
        if self.permission == "bypassPermissions":
            args.append("--dangerously-skip-permissions")
        elif self.permission != "default":
            args += ["--permission-mode", self.permission]
        return [CLAUDE] + args + self.args

    def start_model(self):
        self.write(self.path("script.json"), self.turns)
        self.model = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "fakemodel.py"), "--script", self.path("script.json"),
             "--log", self.path("requests.jsonl")], stdout=subprocess.PIPE, text=True, env=BARE)
        url = "http://127.0.0.1:%d" % int(self.model.stdout.readline().rsplit(":", 1)[1])
        return dict(self.full_env(), ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="sk-ant-fake", IS_SANDBOX="1",
                    CLAUDE_CODE_TMPDIR=self.path("tmp"), CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
                    DISABLE_AUTOUPDATER="1")

    def stop_model(self):
        self.model.kill()
        self.model.wait()
        self.model.stdout.close()

    def go(self):
        """Run it to its end."""
        env = self.start_model()
        try:
            with open(self.path("stdout"), "w") as out, open(self.path("stderr"), "w") as err:
                process = subprocess.Popen(self.command_line(), env=env, cwd=self.start, stdin=subprocess.DEVNULL,
                                           stdout=out, stderr=err, start_new_session=True)
                try:
                    self.rc = process.wait(self.timeout)
                except subprocess.TimeoutExpired:
                    self.rc = "timeout"
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        finally:
            self.stop_model()
        with open(self.path("stdout")) as f:
            self.out = f.read()
        with open(self.path("stderr")) as f:
            self.err = f.read()
        assert self.rc == 0, "claude ended with %s: %s%s" % (self.rc, self.out[-600:], self.err[-600:])
        return self

    # what happened

    def requests(self):
        return [r for r in read_jsonl(self.path("requests.jsonl")) if r["api"] and r["lane"] != "side"]

    def results(self, lane=None):
        """Every tool result that reached the model, in order, as (error, text)."""
        return [(x["error"], x["text"]) for r in self.requests() if lane in (None, r["lane"]) for x in r["tool_results"]]

    def here(self, name):
        """The content of a file in the project on this side, or None."""
        try:
            with open(os.path.join(self.project, name)) as f:
                return f.read()
        except FileNotFoundError:
            return None
