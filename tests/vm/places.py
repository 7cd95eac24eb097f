"""Files and folders, terminals and ports."""
import hashlib
import json
import os
import subprocess

from place import eventually, gone
from terminal import Terminal

SERVER = """import socket,sys
s=socket.create_server((sys.argv[1],int(sys.argv[2])))
while True:
 c,_=s.accept()
 try: c.sendall(b'<'+c.recv(99)+b'>')
 except OSError: pass
 c.close()"""
ASK = """import socket,sys
try:
 s=socket.create_connection(('127.0.0.1',int(sys.argv[1])),5); s.sendall(sys.argv[2].encode()); print(s.makefile().read())
except OSError: print('nobody')"""


def ask(place, port, text):
    """The answer on a port of the laptop's."""
    return place.on("laptop", "/usr/bin/python3", "-c", ASK, str(port), text).strip()


def seeded(place, pipe):
    """The project is sent, drift is named, a second sending is asked for"""
    place.edit("src/main.c", "int main;\n")
    place.edit("a\nname", "x")
    if not os.path.islink(place.here("link")):
        os.symlink("/nowhere", place.here("link"))
    _, err = place.says("vm", "seed", pipe, "--over", holds=("sent ",))
    place.says("drift", pipe, holds=("is the same as the project",))
    place.edit("src/main.c", "int other;\n")
    out, _ = place.says("drift", pipe, status=1)
    assert out == "> M src/main.c\n", out
    place.says("pin", pipe, "--guard", "--drift", "warn")
    out, err = place.says("run", "--", "cat", "src/main.c")
    assert out == "int main;\n" and "the copy on %s isn't the same as the project: src/main.c" % pipe in err, (out, err)
    place.says("vm", "seed", pipe, status=125, holds=("has a copy on",))
    place.says("vm", "seed", pipe, "--over")
    assert place.says("run", "--", "cat", "src/main.c") == ("int other;\n", "")
    place.says("copies", holds=("/srv/work/project",))
    place.unpin()


def copied(place, pipe):
    """`cp` both ways: folders, links, holes, modes, and a link that is cut"""
    os.makedirs(place.here("tree/deep"), exist_ok=True)
    place.edit("tree/deep/a b\n", "text")
    place.edit("tree/run.sh", "#!/bin/sh\necho ran\n")
    os.chmod(place.here("tree/run.sh"), 0o755)
    if not os.path.islink(place.here("tree/link")):
        os.symlink("../run.sh", place.here("tree/link"))
    with open(place.here("tree/sparse"), "wb") as f:
        f.seek(64 << 20)
        f.write(b"end")
    place.sh("rm -rf /tmp/tree")
    place.says("cp", "tree", "%s:/tmp/tree" % pipe, holds=("copied",))
    assert place.sh("sh /tmp/tree/run.sh; readlink /tmp/tree/link; cat '/tmp/tree/deep/a b\n'; stat -c %U /tmp/tree") == (
        "ran\n../run.sh\ntext%s\n" % place.user)
    size, blocks = map(int, place.sh("stat -c '%s %b' /tmp/tree/sparse").split())
    assert size == (64 << 20) + 3 and blocks * 512 < 1 << 20, (size, blocks)
    large = os.urandom(24 << 20)
    place.edit("large", large)
    digest = hashlib.sha256(large).hexdigest()
    for source, target, look in (("large", "%s:/tmp/large" % pipe, "/tmp/.boxery*"), ("%s:/tmp/large" % pipe, "back", None)):
        process = subprocess.Popen(place.command("cp", source, target), env=place.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        eventually("some of it came", place.connections)
        place.reset()
        _, err = process.communicate(timeout=180)
        assert process.returncode == 0, err
    assert place.sh("sha256sum </tmp/large").split()[0] == digest
    with open(place.here("back"), "rb") as f:
        assert hashlib.sha256(f.read()).hexdigest() == digest
    place.sh("rm -rf /tmp/tree /tmp/large")
    for name in ("large", "back", "tree/sparse"):
        os.unlink(place.here(name))


def same_path(place, pipe):
    """The copy at the project's own path: really there for root, in a namespace for an ordinary user"""
    config = place.at("laptop/.config/boxery/config.toml")
    with open(config) as f:
        before = f.read()
    want = "real" if place.user == "root" else "namespace"
    if want == "namespace":
        # what an ordinary user can't have is said, and nothing is made
        place.says("vm", "add", "other", "%s@10.77.0.2" % place.user, "--pipe", pipe, "--same-path", "yes", status=125,
                   holds=("can make no folders in",))
    place.edit("main.c", "main\n")
    place.says("vm", "seed", pipe, "--over")
    head, mine = before.split("[vm.%s]\n" % pipe)
    text = head + "[vm.%s]\n" % pipe + mine.replace('paths = "mapped"', 'paths = "%s"' % want, 1)
    assert text != before, before
    place.write("laptop/.config/boxery/config.toml", text)
    place.says("vm", "seed", pipe, "--move" if want == "real" else "--over")
    place.says("pin", pipe, "--guard", "--drift", "off")
    out, _ = place.says("run", "--", "bash", "-c", "pwd; cat /srv/work/project/main.c; ls $PWD/*.c | tail -n 1")
    assert out == "/srv/work/project\nmain\n/srv/work/project/main.c\n", out
    assert place.sh("ls -d /srv/work/project 2>/dev/null || echo none") == (
        "/srv/work/project\n" if want == "real" else "none\n")
    place.says("vm", "doctor", pipe, holds=("paths          %s: " % want,))
    place.unpin()
    place.write("laptop/.config/boxery/config.toml", before)
    if want == "real":
        place.says("vm", "seed", pipe, "--move")
        place.sh("rmdir -p /srv/work/project 2>/dev/null || :")


def shell(place, pipe):
    """A shell is a real terminal: its size, a new size, job control; it comes back after a cut"""
    with Terminal(place.command("shell", pipe, "--cwd", "/"), place.environment) as terminal:
        terminal.type("PS1='\\r\\n[there]'; exec bash --norc -i\n")
        terminal.type("PS1='\\r\\n[at%''there]'; unset PROMPT_COMMAND\n")
        terminal.until("[at%there]")
        terminal.type("tty; stty size; echo $TERM; pwd; id -un\n")
        terminal.until("/dev/pts/")
        terminal.until("24 80\r\nxterm-256color\r\n/\r\n%s\r\n" % place.user)
        terminal.type("bash -c \"trap 'stty size; kill \\$!; exit' WINCH; sleep 1000 & echo re''ady; wait\"\n")
        terminal.until("ready\r\n")
        terminal.resize(50, 132)
        terminal.until("50 132\r\n")
        terminal.until("[at%there]")
        terminal.type("sleep 1000\n")
        terminal.until("sleep 1000")
        eventually("it sleeps", lambda: [p for p in place.in_vm() if p.argv == ["sleep", "1000"]])
        terminal.type("\x1a")
        terminal.until("Stopped")
        terminal.until("[at%there]")
        terminal.type("kill %1; wait; here=still\n")
        terminal.until("[at%there]")
        place.reset()
        terminal.type("echo $here-the''re\n")
        terminal.until("still-there\r\n")
        terminal.type("exit 7\n")
        code, said = terminal.end()
    assert code == 7, (code, said)


def forwarded(place, pipe):
    """`boxery forward`, after a cut too"""
    out, _ = place.says("jobs", "start", pipe, "--cwd", "/", "--", "python3", "-c", SERVER, "127.0.0.1", "8080")
    job = out.strip()
    process = subprocess.Popen(place.command("forward", pipe, "18080:8080"), env=place.environment, stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    said = process.stderr.readline()
    assert "127.0.0.1:18080" in said, said
    try:
        eventually("an answer", lambda: ask(place, 18080, "a") == "<a>")
        place.reset("vm")
        eventually("an answer after a cut", lambda: ask(place, 18080, "b") == "<b>")
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert ask(place, 18080, "c") == "nobody"
    place.says("jobs", "stop", job[:8], pipe)


def offered(place, pipe):
    """A port that a session's job listens on is here by itself, after a cut too, and goes with it"""
    session = {"CLAUDE_CODE_SESSION_ID": "one"}
    words = ("jobs", "start", pipe, "--cwd", "/", "--", "python3", "-c", SERVER, "0.0.0.0", "3000")
    code, out, told = place.boxery_says(*words, more=session)
    assert code == 0, told
    job, line = out.strip(), "boxery: port 3000 of %s is 127.0.0.1:3000 on this laptop\n" % pipe
    eventually("an answer", lambda: ask(place, 3000, "a") == "<a>")
    _, _, later = place.boxery_says("run", pipe, "--cwd", "/", "--", "true", more=session)
    assert told + later == line, (told, later)
    place.reset()
    eventually("an answer after a cut", lambda: ask(place, 3000, "b") == "<b>")
    out, _ = place.says("jobs", "list", pipe, "--json")
    row = next(row for row in json.loads(out) if row["job"] == job)
    assert row["ports"] == [{"port": 3000, "local": 3000}], row
    place.says("jobs", "stop", job[:8], pipe)
    gone("the port", lambda: ask(place, 3000, "c") != "nobody")
