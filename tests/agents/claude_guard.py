"""Claude Code with boxery's hook: unpinned, and pinned in guard mode."""
import glob
import json
import os
import re
import sys

import drive
from drive import bash
from house import PIPES, cases, test

AWKWARD_REASON = "echo 'it'\\''s \"quoted\" $HOME `x` \u00e9 \U0001f600' && touch ran\nsecond line"


def monitor(command, **more):
    """Turns that load the deferred tool Monitor and call it."""
    return [{"call": "ToolSearch", "input": {"query": "select:Monitor", "max_results": 5}},
            {"call": "Monitor", "input": dict({"command": command, "description": "d", "timeout_ms": 5000}, **more)}]


def subagent(*turns):
    """A script in which the main agent hands the turns to a subagent and waits for it."""
    return {"lanes": [
        {"name": "sub", "when": "SUBAGENT", "turns": list(turns) + [{"say": "sub done"}]},
        {"name": "main", "turns": [
            {"call": "Agent", "input": {"description": "do", "prompt": "SUBAGENT run it", "subagent_type": "general-purpose",
                                        "run_in_background": False}},
            {"say": "all done"}]}]}


def reason_of(session, command, **fields):
    """The reason that the endpoint gives for this call, outside any session."""
    answer = json.loads(session.hook("PreToolUse", tool_name="Bash", tool_use_id="toolu_direct",
                                     tool_input={"command": command, "description": "d"}, **fields).stdout)
    output = answer["hookSpecificOutput"]
    assert output["permissionDecision"] == "deny", output
    return output["permissionDecisionReason"]


def pinned(world, name, turns, mode="guard", pipe="native", **more):
    session = world.session(name, turns, **more)
    session.boxery("pin", "dev-" + pipe, "--" + mode, "--drift", "off")
    if mode == "redirect":
        session.boxery("vm", "seed", "dev-" + pipe)
    return session


@cases("guard: the denial reaches the model word for word ({0})", [
    ("default",), ("bypassPermissions",), ("acceptEdits",)])
def _(world, permission):
    session = pinned(world, "guard-words-" + permission, [bash(AWKWARD_REASON), {"say": "done"}], permission=permission,
                     settings={"permissions": {"allow": ["Bash"]}})
    session.go()
    want = reason_of(session, AWKWARD_REASON)
    (error, told), = session.results()
    assert error and told == "PreToolUse:Bash hook error: " + want, (told, want)
    assert "vm_bash" in told and "vm_jobs" in told and "dev-native" in told, told
    assert "run dev-native -- bash -c" in told, told
    assert session.here("ran") is None and world.there(session, "ran") is None


@test("guard: subagent, background and Monitor calls are denied")
def _(world):
    calls = [bash("touch ran-1"), bash("touch ran-2", run_in_background=True), bash("touch ran-3", timeout=60000),
             bash("touch ran-4", dangerouslyDisableSandbox=True)] + monitor("touch ran-5")
    session = pinned(world, "guard-tools", calls + [{"say": "done"}])
    session.go()
    told = [t for _, t in session.results()]
    assert sum("vm_bash" in t for t in told) == 5, told
    sub = pinned(world, "guard-subagent", subagent(bash("touch ran-6"), bash("touch ran-7", run_in_background=True)))
    sub.go()
    assert [("vm_bash" in t) for _, t in sub.results("sub")] == [True, True], sub.results()
    for where in (session, sub):
        assert not [n for n in os.listdir(where.project) if n.startswith("ran")], os.listdir(where.project)


def with_server(session):
    """Give the session another tool's MCP server, which runs commands."""
    session.write(session.path("mcp.json"), {"mcpServers": {"probe": {
        "command": sys.executable, "args": [os.path.join(drive.HERE, "mcpprobe.py")]}}})
    session.args += ["--mcp-config", session.path("mcp.json")]
    return session


@cases("{0}: a command for another MCP server's tool is denied, unless the user's list names the tool", [("guard",), ("redirect",)])
def _(world, mode):
    turns = [{"call": "mcp__probe__shell", "input": {"command": "touch ran"}}, {"say": "done"}]
    session = with_server(pinned(world, "mcp-denied-" + mode, turns, mode)).go()
    (error, told), = session.results()
    assert error and "mcp__probe__shell" in told, told
    assert session.here("ran") is None
    allowed = with_server(pinned(world, "mcp-allowed-" + mode, turns, mode))
    path = os.path.join(allowed.home, ".config/boxery/config.toml")
    with open(path) as f:
        text = f.read()
    allowed.write(path, 'allow_tools = ["mcp__probe__shell"]\n' + text)
    allowed.go()
    assert allowed.here("ran") == "", allowed.results()


@test("unpinned: another MCP server's tool runs its command")
def _(world):
    session = with_server(world.session("mcp-unpinned", [
        {"call": "mcp__probe__shell", "input": {"command": "touch ran"}}, {"say": "done"}])).go()
    assert session.here("ran") == "", session.results()


@test("guard: the way out that the denial names works when the model takes it")
def _(world):
    session = world.session("guard-way-out", [])
    session.boxery("pin", "dev-native", "--guard", "--drift", "off")
    session.boxery("vm", "seed", "dev-native")
    command = "hostname > where; cat where"
    reason = reason_of(session, command)
    start = reason.index(session.binary + " run dev-native")
    offered = reason[start:].rstrip().rstrip("`")
    session.turns = [bash(command), bash(offered), {"say": "done"}]
    session.go()
    first, second = session.results()
    assert first[0] and not second[0] and second[1].strip().endswith("dev-vm"), session.results()
    assert session.here("where") is None and world.there(session, "where") == "dev-vm\n"


@test("guard: file tools still write the project, and never what would undo the pin")
def _(world):
    session = pinned(world, "guard-files", [])
    settings = os.path.join(session.home, ".claude/settings.json")
    targets = [settings, os.path.join(session.project, ".claude/settings.local.json"),
               os.path.join(session.home, ".config/boxery/config.toml"), os.path.join(session.project, ".mcp.json")]
    before = {path: os.path.exists(path) and open(path).read() for path in targets}
    session.turns = [{"call": "Write", "input": {"file_path": os.path.join(session.project, "code.txt"), "content": "x\n"}}]
    session.turns += [{"call": "Write", "input": {"file_path": path, "content": "{}"}} for path in targets]
    session.turns += [{"call": "Read", "input": {"file_path": settings}},
                      {"call": "Edit", "input": {"file_path": settings, "old_string": "hooks", "new_string": "sooks"}},
                      {"say": "done"}]
    session.go()
    assert session.here("code.txt") == "x\n", session.results()
    for path in targets:
        now = os.path.exists(path) and open(path).read()
        assert now == before[path], (path, session.results())


@cases("an environment pin guards, and one that names no VM denies ({0})", [
    ("dev-native", "vm_bash"), ("nobody", "nobody")])
def _(world, vm, word):
    session = world.session("guard-env-" + vm, [bash("touch ran"), {"say": "done"}])
    session.env["BOXERY_VM"] = vm
    session.go()
    (error, told), = session.results()
    assert error and word in told, told
    assert session.here("ran") is None


UNPINNED = [bash("echo out; echo err >&2; touch made; exit 7"), bash("cat <<'EOF'\n'q' \"d\" $x\nEOF"),
            bash("sleep 0; echo background", run_in_background=True), bash("touch $(echo a b)"), {"say": "done"}]


def neutral(session, text):
    for old, new in ((session.project, "/project"), (session.project.replace("/", "-"), "-project"), (session.home, "/home"),
                     (session.dir.replace("/", "-"), "-dir"), (session.dir, "/dir"), (session.name, "project")):
        text = text.replace(old, new)
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b[a-z0-9]{9}\b", "ID", text)


@test("unpinned: every tool result is what it is without boxery, and nothing speaks of boxery")
def _(world):
    ours = world.session("unpinned-with", UNPINNED).go()
    plain = world.plain("unpinned-plain", UNPINNED).go()
    assert [(e, neutral(ours, t)) for e, t in ours.results()] == [(e, neutral(plain, t)) for e, t in plain.results()]
    assert sorted(os.listdir(ours.project)) == sorted(os.listdir(plain.project)) == ["a", "b", "made"]
    for request in ours.requests():
        said = request["system"] + request["all_users"]
        for path in (ours.project, ours.dir):
            # Claude Code names its own folder of a project by the project's path.
            said = said.replace(path, "").replace(re.sub("[^A-Za-z0-9]", "-", path), "")
        assert "boxery" not in said, said
    assert "boxery" not in ours.err and "hook" not in ours.err, ours.err


@cases("unpinned: a {0} leaves every call alone", [
    ("missing binary", "missing"), ("binary that is not executable", "mode"), ("binary killed by a signal", "kill")])
def _(world, _what, fault):
    from claude_failures import own_binary, break_binary
    session = own_binary(world, "unpinned-" + fault, [bash("touch ran; echo fine"), {"say": "done"}])
    break_binary(session, fault)
    session.go()
    assert session.results() == [(False, "fine")], session.results()
    assert session.here("ran") == ""


@cases("guard holds whatever pipe the VM has ({0})", [(p,) for p in PIPES])
def _(world, pipe):
    session = pinned(world, "guard-pipe-" + pipe, [bash("touch ran"), {"say": "done"}], pipe=pipe)
    session.go()
    assert "vm_bash" in session.results()[0][1] and session.here("ran") is None


@cases("pinned by BOXERY_VM: a project's settings can't {0} it", [("blank", ""), ("change", "another")])
def _(world, name, value):
    session = world.session("guard-env-" + name, [bash("touch ran"), {"say": "done"}])
    session.env["BOXERY_VM"] = "dev-native"
    moved = dict.fromkeys(["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDE_PID"], "/nowhere")
    session.write(os.path.join(session.project, ".claude/settings.json"), {"env": dict(moved, BOXERY_VM=value)})
    session.go()
    (error, told), = session.results()
    assert error and "pinned to VM dev-native" in told, told
    assert session.here("ran") is None


@cases("a session pin follows `claude {0}`", [("--resume ID",), ("--resume ID --fork-session",), ("--continue",)])
def _(world, words):
    session = world.session("guard-" + words.replace(" ", "").strip("-"), [bash("touch ran-1"), {"say": "done"}]).go()
    assert session.here("ran-1") == "", session.results()
    transcripts = glob.glob(os.path.join(session.home, ".claude/projects/*/*.jsonl"))
    assert len(transcripts) == 1, transcripts
    number = os.path.basename(transcripts[0]).removesuffix(".jsonl")
    # From a terminal that stands elsewhere.
    session.boxery("pin", "dev-native", "--session", number, "--drift", "off", cwd=session.home)
    session.turns, session.args = [bash("touch ran-2"), {"say": "done"}], words.replace("ID", number).split()
    session.go()
    error, told = session.results()[-1]
    assert error and "pinned to VM dev-native" in told, told
    assert session.here("ran-2") is None
