"""Claude Code pinned, and held to a Fence policy."""
import json
import os

from claude_guard import pinned
from drive import bash
from house import cases, test

NO_PUSH = {"command": {"deny": ["git push"]}}
# `git push` as the model may write it. Each would leave a file if it ran, wherever it ran.
HIDDEN = [
    "touch ran-1; git push",
    "touch ran-2; sudo env A=1 git push origin main",
    "touch ran-3; bash -c 'git push'",
    "touch ran-4; echo $(git push)",
    "touch ran-5\ncd sub && git -C . push --force",
    "touch ran-6; xargs git push < /dev/null",
    "touch ran-7; $(echo git) push",
]


def policed(world, name, turns, policy, mode="redirect", trust=True, **more):
    """A pinned session whose project holds this policy."""
    session = pinned(world, name, turns, mode, **more)
    session.write(os.path.join(session.project, "fence.json"), policy)
    if trust:
        session.boxery("policy", "trust")
    return session


def configure(session, line):
    path = os.path.join(session.home, ".config/boxery/config.toml")
    with open(path) as f:
        text = f.read()
    session.write(path, line + "\n" + text)


def nothing_ran(world, session):
    for where in (session.project, world.copy_of(session)):
        found = [n for n in os.listdir(where or session.project) if n.startswith("ran")]
        assert not found, (where, found, session.results())


def kinds(session):
    return [json.loads(line) for line in session.boxery("log", "--json").stdout.splitlines()]


@cases("policy: `git push` is denied however it is written, with the rule and the file named ({0})", [("guard",), ("redirect",)])
def _(world, mode):
    session = policed(world, "policy-hidden-" + mode, [bash(c) for c in HIDDEN] + [{"say": "done"}], NO_PUSH, mode,
                      settings={"permissions": {"allow": ["Bash"]}}).go()
    results = session.results()
    assert all(error for error, _ in results) and len(results) == len(HIDDEN), results
    for _, told in results[:-1]:
        assert "denied by the rule `git push` of `command.deny` in `%s/fence.json`" % session.project in told, told
    assert "fence.json" in results[-1][1] and "can't be judged" in results[-1][1], results[-1]
    nothing_ran(world, session)
    denied = [e for e in kinds(session) if e.get("decision") == "deny"]
    assert [e["rule"] for e in denied] == ["policy"] * 6 + ["policy-unclear"], denied


@test("policy: what isn't denied runs in the VM as ever, and with no policy file the default rules hold")
def _(world):
    session = policed(world, "policy-harmless", [bash("echo 'git push' > ran; cat ran"), {"say": "done"}], NO_PUSH).go()
    assert session.results() == [(False, "git push")], session.results()
    assert world.there(session, "ran") == "git push\n" and session.here("ran") is None
    plain = pinned(world, "policy-none", [bash("sudo shutdown now"), bash("X=echo; $X ran > ran; cat ran"), {"say": "done"}], "redirect").go()
    first, second = plain.results()
    assert first[0] and "the default rule `shutdown`" in first[1], first
    assert second == (False, "ran"), second
    assert all("no policy file holds here" in r["system"] for r in plain.requests()), plain.requests()


@test("policy: a project's own file restricts before anybody trusts it, and loosens only then")
def _(world):
    turns = [bash("touch ran; npm publish"), bash("touch ran; git push"), {"say": "done"}]
    lax = {"command": {"deny": ["git push"], "allow": ["npm publish"], "useDefaults": False}}
    session = policed(world, "policy-untrusted", turns, lax, trust=False)
    session.write(os.path.join(session.home, ".config/fence/fence.json"), {"command": {"deny": ["npm publish"]}})
    session.go()
    (first, by_user), (second, by_project) = session.results()
    assert first and "npm publish" in by_user and ".config/fence/fence.json" in by_user, by_user
    assert second and session.project in by_project, by_project
    nothing_ran(world, session)
    session.boxery("policy", "trust")
    session.turns = [bash("touch ran; true || npm publish"), bash("git push"), {"say": "done"}]
    session.go()
    (first, _), (second, _) = session.results()[-2:]
    assert not first and second and world.there(session, "ran") == "", session.results()


@cases("policy: one that can't be used denies every command ({0})", [("guard",), ("redirect",)])
def _(world, mode):
    session = policed(world, "policy-broken-" + mode, [bash("touch ran"), bash("git status"), {"say": "done"}],
                      '{"command": {"deny": "git push"}}', mode, trust=False).go()
    for error, told in session.results():
        assert error and "can't be used" in told and "wrong `command.deny`" in told, told
    nothing_ran(world, session)


@test("policy: rules that no VM enforces refuse the run in one line, and run once the user accepts that")
def _(world):
    policy = {"filesystem": {"denyRead": ["~/.ssh"]}, "network": {"deniedDomains": ["example.com"]}}
    session = policed(world, "policy-sections", [bash("touch ran"), {"say": "done"}], policy).go()
    (error, told), = session.results()
    assert error and "Exit code 125" in told and "has rules on filesystem, network" in told, told
    assert len([line for line in told.splitlines() if line.startswith("boxery: ")]) == 1, told
    nothing_ran(world, session)
    configure(session, 'accept = ["filesystem:unavailable", "network:unavailable"]')
    session.go()
    assert not session.results()[-1][0] and world.there(session, "ran") == "", session.results()
    events = kinds(session)
    refused = [e for e in events if e["kind"] == "run_refused"]
    assert [e["rule"] for e in refused] == ["policy-section"], refused
    started = [e for e in events if e["kind"] == "run_started"]
    assert "not enforced, as the user accepts: filesystem, network" in started[-1].get("detail", ""), started
    session.boxery("log", "check")


@test("policy: one that changed between the hook and the run refuses the run")
def _(world):
    session = policed(world, "policy-changed", [bash("touch ran"), {"say": "done"}], NO_PUSH)
    # The agent's shell knows the functions of the user's start-up file, and bash looks there even for `eval`.
    session.write(os.path.join(session.home, ".bashrc"),
                  "eval() { printf '{}' > %s/fence.json; builtin eval \"$@\"; }\n" % session.project)
    session.go()
    (error, told), = session.results()
    assert error and "the policy changed between the hook and this run" in told, told
    nothing_ran(world, session)
    assert [e["rule"] for e in kinds(session) if e["kind"] == "run_refused"] == ["policy-changed"]


@test("policy: the way out that a denial names is held to the policy too, and the agent can't change it")
def _(world):
    session = policed(world, "policy-way-out", [], NO_PUSH, "guard")
    session.boxery("vm", "seed", "dev-native", "--over")
    run = session.binary + " run dev-native -- bash -c "
    session.turns = [
        bash(run + "'touch ran; git push'"), bash(run + "'echo fine'"),
        {"call": "Write", "input": {"file_path": os.path.join(session.project, "fence.jsonc"), "content": "{}"}},
        bash(session.binary + " policy trust"), {"say": "done"}]
    session.go()
    push, fine, write, trust = session.results()
    assert push[0] and "command.deny" in push[1], push
    assert fine == (False, "fine"), fine
    assert write[0] and "a policy file" in write[1], write
    assert trust[0] and "isn't for the agent" in trust[1], trust
    nothing_ran(world, session)


@test("policy: one that the hook is held to stands in place of the project's")
def _(world):
    session = policed(world, "policy-held", [bash("touch ran; make"), bash("touch made; true git push"), {"say": "done"}], NO_PUSH)
    strict = os.path.join(session.home, "strict.jsonc")
    session.write(strict, '{"command": {"deny": ["make"]}} // for every project')
    session.boxery("hook", "install", "claude-code", "--settings", strict)
    session.go()
    (first, told), (second, _) = session.results()
    assert first and strict in told and not second, session.results()
    nothing_ran(world, session)
    assert world.there(session, "made") == ""
