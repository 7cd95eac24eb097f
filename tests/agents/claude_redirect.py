"""Claude Code pinned in redirect mode: its shell calls run in the VM, unchanged."""
import json
import os
import re

from claude_guard import monitor, pinned, subagent
from drive import bash
from house import PIPES, cases, test

# What Claude's own refusal of control characters leaves of the awkward ones. Each that can
# leaves a file, so that the side on which it ran can be seen.
COMMANDS = [
    "echo 'single' \"double\" `echo tick` $(echo sub) ${HOME} $? > ran-01; cat ran-01",
    "echo one; echo two && false || echo three | cat > ran-02 2>&1 &",
    "cat <<'EOF' > ran-03\nline 1 'q' \"d\" $x\n\tindented\nEOF\necho after",
    "printf '%s\\n' \"a\\\\b\" 'it'\\''s' $'tab\\there' > ran-04; cat ran-04",
    "echo trailing backslash \\\n  continued > ran-05; cat ran-05",
    "echo unicode \u00e9 \u4e2d \U0001f600 > ran-06; cat ran-06 # a comment",
    "echo bang! !! !$ > ran-07; set +H; echo {a,b}{1..3} ~ *",
    "-n leading dash; touch ran-08",
    "  echo leading and trailing blanks > ran-09; cat ran-09  \n\n",
    "touch ran-10\necho unbalanced 'quote",
    "touch ran-11; exit 3",
    "touch ran-12\ntrue && } && echo closes what the agent opened",
    "echo \"$(cat <<'X'\n)\nX\n)\" > ran-13; cat ran-13",
]
ALLOW = {"permissions": {"allow": ["Bash"]}}


def arrived(world, session):
    """The texts of the model's that the VM's bash got, in order."""
    return [text for text in world.ran(session) if not text.startswith("source ")]


@cases("redirect: 13 awkward commands run in the VM, byte for byte, and not here ({0}, {1}, {2})", [
    (permission, who, pipe) for pipe in PIPES for permission in ("default", "bypassPermissions") for who in ("main", "subagent")])
def _(world, permission, who, pipe):
    turns = [bash(c) for c in COMMANDS]
    script = turns + [{"say": "done"}] if who == "main" else subagent(*turns)
    session = pinned(world, "redirect-%s-%s-%s" % (permission[:3], who, pipe), script, "redirect", pipe,
                     permission=permission, settings=ALLOW)
    session.go()
    results = session.results("sub" if who == "subagent" else "main")
    assert arrived(world, session) == COMMANDS, (arrived(world, session), results)
    assert not [n for n in os.listdir(session.project) if n.startswith("ran")], os.listdir(session.project)
    there = sorted(n for n in os.listdir(world.copy_of(session)) if n.startswith("ran"))
    assert there == ["ran-%02d" % n for n in range(1, 14)], (there, results)
    told = [text for _, text in results]
    assert told[0] == "single double tick sub %s 0" % world.vm.home, told[0]
    assert "after" in told[2] and told[3] == "a\\b\nit's\ntab\there" and told[4] == "trailing backslash continued"
    assert told[5] == "unicode \u00e9 \u4e2d \U0001f600" and told[8] == "leading and trailing blanks"
    assert results[10][0] and told[10].startswith("Exit code 3"), results[10]
    assert told[12] == ")", told[12]


@cases("redirect: exit 7 stays 7, both streams arrive, as without boxery ({0})", [(p,) for p in PIPES])
def _(world, pipe):
    turns = [bash("echo out; echo err >&2; exit 7"), bash("kill -TERM $$"), bash("true"), bash("printf 'no newline'"),
             {"say": "done"}]
    session = pinned(world, "redirect-exit-" + pipe, turns, "redirect", pipe).go()
    plain = world.plain("plain-exit-" + pipe, turns).go()
    for one in (session, plain):
        error, told = one.results()[0]
        # two streams have no order between them
        assert error and told.startswith("Exit code 7\n") and sorted(told.split("\n")[1:]) == ["err", "out"], told
    assert session.results()[2:] == plain.results()[2:], (session.results(), plain.results())
    assert session.results()[1][1].startswith("Exit code 143"), session.results()[1]


@cases("redirect: run_in_background stays in the background, in the VM ({0})", [(p,) for p in PIPES])
def _(world, pipe):
    turns = [bash("hostname > ran; echo from the background", run_in_background=True),
             bash("cat ran"),
             {"say": "done"}]
    session = pinned(world, "redirect-background-" + pipe, turns, "redirect", pipe).go()
    first = session.results()[0][1]
    assert "background" in first.lower(), first
    output = re.search(r"(/\S+\.output)", first)
    assert output, first
    with open(output.group(1)) as f:
        text = f.read()
    assert "from the background" in text, text
    assert session.here("ran") is None and world.there(session, "ran") == "dev-vm\n"


@test("redirect: Monitor runs in the VM, in the main agent and never here")
def _(world):
    session = pinned(world, "redirect-monitor", monitor("hostname > ran; echo event")
                     + [bash("until [ -s ran ]; do sleep 0.1; done", timeout=60000), {"say": "done"}], "redirect").go()
    assert session.here("ran") is None
    assert world.there(session, "ran") == "dev-vm\n", session.results()


@test("redirect: the shell of a skill is denied and says why")
def _(world):
    session = pinned(world, "redirect-skill", [{"call": "Skill", "input": {"skill": "probe"}}, {"say": "done"}], "redirect")
    session.write(os.path.join(session.home, ".claude/skills/probe/SKILL.md"),
                  "---\nname: probe\ndescription: probe\n---\nThe answer is !`touch ran; hostname`.\n")
    session.go()
    assert session.here("ran") is None and world.there(session, "ran") is None
    text = "\n".join(r["all_users"] for r in session.requests())
    assert "[not run: blocked by hook: " in text and "dev-native" in text, text[-1500:]


@test("redirect: a subagent's Monitor and background calls run in the VM and never here")
def _(world):
    session = pinned(world, "redirect-subagent-tools", subagent(
        bash("touch ran-1", run_in_background=True), bash("touch ran-2", timeout=30000),
        bash("touch ran-3", dangerouslyDisableSandbox=True), *monitor("touch ran-4; echo event"),
        # A monitor runs beside the session, which ends it.
        bash("until [ -e ran-4 ]; do sleep 0.1; done", timeout=60000)), "redirect").go()
    assert not [n for n in os.listdir(session.project) if n.startswith("ran")]
    for name in ("ran-2", "ran-3", "ran-4"):
        assert world.there(session, name) == "", (name, session.results())


@test("redirect: a rewritten call that never arrives raises the alarm, and the session is in guard from then on")
def _(world):
    # The agent's shell knows the functions of the user's start-up file, and bash looks there even for `eval`.
    session = pinned(world, "redirect-escape", [bash("true one"), bash("true two"), bash("true three"), {"say": "done"}], "redirect")
    session.write(os.path.join(session.home, ".bashrc"), "eval() { if [ -e ran ]; then sleep 11; fi; touch ran; }\n")
    session.go()
    (first, _), (second, _), (third, told) = session.results()
    assert session.here("ran") == "" and not first and not second, session.results()
    assert third and "pinned to VM dev-native" in told and "never arrived" in told, told
    kinds = [json.loads(line)["kind"] for line in session.boxery("log", "--json").stdout.splitlines()]
    assert "escaped" in kinds, kinds
    status = session.boxery("hook", "status", check=False)
    assert status.returncode == 1 and "alarm" in status.stdout, status.stdout


@test("redirect: a session started in a folder below runs in the folder below, on the files that were sent")
def _(world):
    session = pinned(world, "redirect-folder", [], "redirect")
    os.makedirs(os.path.join(session.project, "below/deep"))
    session.write(os.path.join(session.project, "below/deep/file"), "x\n")
    session.boxery("vm", "seed", "dev-native", "--over")
    session.turns = [bash("cat file; pwd"), {"say": "done"}]
    session.start = os.path.join(session.project, "below/deep")
    session.go()
    error, told = session.results()[0]
    assert not error and re.fullmatch("x\n" + world.dir + "/redirect-folder-[0-9a-f]{8}/below/deep", told), told


REWRITER = """import json, sys
call = json.load(sys.stdin)["tool_input"]
call["command"] = "touch second"
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": call}}))
"""
FRONT_MATTER = "---\nname: rw\ndescription: d\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n" \
               "        - type: command\n          command: python3 %s\n---\nYou work.\n"
RUNS_AGENT = {"lanes": [
    {"name": "sub", "when": "SUBLANE", "turns": [bash("touch first"), {"say": "sub done"}]},
    {"name": "main", "turns": [{"call": "Agent", "input": {
        "description": "d", "prompt": "SUBLANE do it", "subagent_type": "rw", "run_in_background": False}}, {"say": "done"}]}]}
RUNS_SKILL = [{"call": "Skill", "input": {"skill": "rw"}}, bash("touch first"), {"say": "done"}]


@cases("redirect: a second rewriter in the front matter of {0} turns the call into guard, by name", [
    ("an agent", "agents/rw.md", RUNS_AGENT), ("a skill", "skills/rw/SKILL.md", RUNS_SKILL)])
def _(world, kind, path, turns):
    session = pinned(world, "redirect-rewriter-" + kind.split()[-1], turns, "redirect")
    script, definition = session.path("rw.py"), os.path.join(session.home, ".claude", path)
    session.write(script, REWRITER)
    session.write(definition, FRONT_MATTER % script)
    session.go()
    assert world.ran(session) == [], world.ran(session)
    assert session.here("first") is None and session.here("second") is None
    assert any(error and definition in told and "may rewrite it too" in told for error, told in session.results()), session.results()
    status = session.boxery("hook", "status", check=False)
    assert definition in status.stdout, status.stdout


@test("redirect: a command that Claude Code would edit arrives unchanged")
def _(world):
    text = "printf '%s' 'dir >nul ' > f; cat f"
    session = pinned(world, "redirect-nul", [bash(text), bash("echo second"), {"say": "done"}], "redirect").go()
    assert [told for _, told in session.results()] == ["dir >nul", "second"], session.results()
    assert world.there(session, "f") == "dir >nul ", world.there(session, "f")
    assert world.ran(session) == [text, "echo second"], world.ran(session)


@test("redirect: a long command takes the private spool and arrives unchanged")
def _(world):
    long = "touch ran; : " + "'x\u00e9' " * 20_000 + "; echo long"
    session = pinned(world, "redirect-long", [bash(long), {"say": "done"}], "redirect").go()
    assert session.results()[0] == (False, "long"), str(session.results())[:500]
    assert arrived(world, session) == [long] or world.there(session, "ran") == ""
    assert session.here("ran") is None


@test("redirect: every decision of a session is on record and the chain holds")
def _(world):
    session = pinned(world, "redirect-record", [bash("echo one"), bash("exit 1"), {"say": "done"}], "redirect").go()
    log = session.boxery("log").stdout
    assert "redirect" in log or "rewrite" in log, log
    session.boxery("log", "check")
