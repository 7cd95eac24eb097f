"""What a command is given, what it gives back, and how it ends."""
import hashlib
import json
import os
import shlex
import signal
import time

from place import VM, eventually, gone
from terminal import Terminal

# Everything that a tree can be: background children, one in a session of its own, one that
# forked twice and left, one that ignores the wish to end, a stopped one.
TREE = """sleep {0} & (setsid sleep {0} &) ; (setsid bash -c 'sleep {0} & disown; exec sleep {0}' &) ;
(env -i sleep {0} &) ; bash -c 'trap "" TERM HUP INT; while :; do sleep 0.2; done' _ {0} &
sleep {0} & stopped=$!
until [ $(grep -lzxf - /proc/[0-9]*/cmdline 2>/dev/null <<<{0} | wc -l) -ge 7 ]; do sleep 0.1; done
kill -STOP $stopped; echo ready; wait; sleep {0}"""


def token(place):
    """A number of seconds that nobody else sleeps."""
    place.tokens = getattr(place, "tokens", 0) + 1
    return "9%d.%03d" % (os.getpid(), place.tokens)


def added(place, pipe):
    """A VM is added after its host key was confirmed, and not before"""
    config = place.at("laptop/.config/boxery/config.toml")
    fingerprint = place.sh("ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub").split()[1]
    add = place.command("vm", "add", pipe, "%s@%s" % (place.user, VM), "--pipe", pipe, "--same-path", "no")
    known = os.path.exists(place.at("laptop/.config/boxery/known_hosts"))
    for answer, status in (("n", 125), ("y", 0)):
        with Terminal(add, place.environment) as terminal:
            if not known:
                said = terminal.until("[y/N] ")
                assert fingerprint in said, said
                terminal.type(answer + "\n")
            code, said = terminal.end()
        assert code == (0 if known else status), (answer, code, said)
        assert os.path.exists(config) == (known or answer == "y"), said
        if known:
            break
    place.says("vm", "list", holds=(pipe, "%s@%s" % (place.user, VM)))
    place.says("vm", "doctor", pipe)


def exact(place, pipe):
    """stdout, stderr and status are the command's own; nothing stands on stdin"""
    for code in (0, 1, 7, 124, 125, 127, 130, 255):
        out, err = place.says("run", pipe, "--cwd", "/", "--", "bash", "-c", "echo out; echo err >&2; exit %d" % code, status=code)
        assert (out, err) == ("out\n", "err\n"), (code, out, err)
    for name, number in (("TERM", 15), ("KILL", 9), ("SEGV", 11)):
        place.says("run", pipe, "--cwd", "/", "--", "bash", "-c", "kill -%s $$" % name, status=128 + number)
    bytes_of_all_kinds = bytes(range(256)) * 4096
    client = place.run(pipe, "cat; echo >&2 done; exit 3", feed=bytes_of_all_kinds)
    assert (client.wait(), bytes(client.out), bytes(client.err)) == (3, bytes_of_all_kinds, b"done\n")
    out, _ = place.says("run", pipe, "--cwd", "/", "--", "sh", "-c", "readlink /proc/$$/fd/0; id -un; hostname; pwd")
    assert out == "/dev/null\n%s\nboxvm\n/\n" % place.user, out
    out, _ = place.says("run", pipe, "--cwd", "/", "--json", "--", "sh", "-c", "echo a; echo b >&2; exit 5", status=5)
    said = json.loads(out)
    assert said["stdout"] == "a\n" and said["stderr"] == "b\n", said
    start, sleeper = time.monotonic(), token(place)
    out, _ = place.says("run", pipe, "--cwd", "/", "--", "bash", "-c", "(sleep %s &) ; echo hi" % sleeper)
    assert out == "hi\n" and time.monotonic() - start < 30, out
    assert place.escaped(sleeper), "what was left in the background is gone"
    out, _ = place.says("jobs", "list", pipe, "--json")
    left = [job for job in json.loads(out) if job["running"] and sleeper in job["command"]]
    assert len(left) == 1 and "background" in left[0]["state"], out
    place.says("jobs", "stop", left[0]["job"], pipe)
    gone("the background child", lambda: place.escaped(sleeper))


def words(place, pipe):
    """Arguments arrive as they are: any bytes but NUL, one of them empty, many of them long"""
    every = bytes(range(1, 256))
    awkward = [b"", b" ", b"'", b'"', b"\\", b"$(id)", b"`id`", b"a\nb\n", b"--", b"-n", b"*", b"~", b"!!", b"\xff\xfe", b"#",
               "\u2028\U0001f9ea".encode(), every, *(every * 257 for _ in range(8))]
    client = place.client(pipe, b"printf", b"%s\\0", *awkward)
    code = client.wait()
    assert code == 0, client.said()
    assert bytes(client.out) == b"".join(word + b"\0" for word in awkward), "the words aren't the same"
    text = b"printf %s '" + every.replace(b"'", b"'\\''") * 400 + b"' | sha256sum"
    client = place.client(pipe, b"bash", b"-c", text)
    want = hashlib.sha256(every * 400).hexdigest()
    assert client.wait() == 0 and client.out.split()[0].decode() == want, (client.out, client.said())


def time_out(place, pipe):
    """A time-out ends the tree, a daemonising grandchild too"""
    sleeper = token(place)
    _, err = place.says("run", pipe, "--cwd", "/", "--timeout", "15s", "--", "bash", "-c", TREE.format(sleeper), status=124)
    assert not place.escaped(sleeper), "left when the client said %s: %s" % (err, place.escaped(sleeper))


def ended_by_signals(place, pipe):
    """Ctrl-C, SIGTERM and kill -9 of the client end the tree"""
    for number, want in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        sleeper = token(place)
        client = place.run(pipe, TREE.format(sleeper))
        eventually("the tree stands", lambda: bytes(client.out) == b"ready\n", 60)
        assert len(place.escaped(sleeper)) >= 7, place.escaped(sleeper)
        client.process.send_signal(number)
        assert client.wait() == want, (number, client.said())
        if number != signal.SIGKILL:
            assert not place.escaped(sleeper), (number, place.escaped(sleeper))
        gone("after signal %d, the tree" % number, lambda: place.escaped(sleeper), 10)


def environment(place, pipe):
    """The login's PATH, the laptop's words, git's name; and what `boxery env` says of it"""
    place.write("laptop/.gitconfig", "[user]\n\tname = A \\\"quoted\\\" N\u00e4me\n\temail = me@laptop\n")
    out, _ = place.says("run", pipe, "--cwd", "/", "--env", "WORD=a b", "--", "bash", "-c",
                        "echo $LANG:$PAGER:$WORD:$HOME:$USER; git config user.name; git config user.email")
    assert out == "C.UTF-8:cat:a b:%s:%s\nA \"quoted\" N\u00e4me\nme@laptop\n" % (place.home(), place.user), out
    login = place.sh("runuser -l %s -c 'echo $PATH'" % place.user)
    out, _ = place.says("run", pipe, "--cwd", "/", "--", "bash", "-c", "echo $PATH")
    assert out == login, (out, login)
    commit = "rm -rf /tmp/own && git init -q /tmp/own && cd /tmp/own && git commit -q --allow-empty -m x && git log --format='%an %ce'"
    out, _ = place.says("run", pipe, "--cwd", "/", "--", "bash", "-c", commit + "; rm -rf /tmp/own")
    assert out == "A \"quoted\" N\u00e4me me@laptop\n", out
    place.says("env", pipe, holds=("PATH", "/bin/bash"))


def prove(place):
    """Note that this program, in the agent's place, honours a rewrite."""
    path = os.readlink("/proc/self/exe")
    status = os.stat(path)
    name = hashlib.sha256(b"\0".join(word.encode() for word in ("claude-code", path, "default", "off"))).hexdigest()
    os.makedirs(place.at("laptop/.local/state/boxery/proofs"), mode=0o700, exist_ok=True)
    proof = {"version": 1, "agent": "claude-code", "permission_mode": "default", "sandbox_mode": "off", "agent_version": "0",
             "proven_at": int(time.time()), "executable": {
                 "path": path, "device": status.st_dev, "inode": status.st_ino, "size": status.st_size,
                 "modified_ns": status.st_mtime_ns}}
    place.write("laptop/.local/state/boxery/proofs/%s.json" % name, json.dumps(proof))
    os.chmod(place.at("laptop/.local/state/boxery/proofs/%s.json" % name), 0o600)


def agents_calls(place, pipe):
    """An agent's calls, rewritten by the hook: each begins where the last one ended"""
    place.edit("a.c", "a\n")
    place.says("vm", "seed", pipe, "--over")
    prove(place)
    place.says("pin", pipe, "--redirect", "--drift", "off")
    calls = 0

    def call(command):
        nonlocal calls
        calls += 1
        payload = {"session_id": "5d4e", "transcript_path": "/dev/null", "cwd": place.project(), "permission_mode": "default",
                   "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": command},
                   "tool_use_id": "toolu_%d" % calls}
        code, out, err = place.boxery_says("hook", "run", "claude-code", feed=json.dumps(payload))
        assert (code, err) == (0, ""), (code, out, err)
        answer = json.loads(out)["hookSpecificOutput"]
        assert "updatedInput" in answer, answer
        shell = place.command("-c", "eval %s </dev/null" % shlex.quote(answer["updatedInput"]["command"]), program="/bin/bash")
        return place.ended(shell)

    copy = call("pwd")[1].strip()
    assert copy.startswith(place.home()), copy
    assert call("mkdir -p sub; cd sub && true") == (0, "", "")
    assert call("pwd; cd /etc; exit 3") == (3, copy + "/sub\n", "")
    assert call("pwd; cat <<'END' | tr a-z A-Z\nit's $(data)\nEND\ncd " + copy) == (0, "/etc\nIT'S $(DATA)\n", "")
    assert call("cat a.c; rmdir sub") == (0, "a\n", "")
    place.says("log", "check")
    place.unpin()
