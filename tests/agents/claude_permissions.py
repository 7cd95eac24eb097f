"""The user's own permission rules mean the same with redirect as without boxery.

Each row is a rule set; each of its commands is run by the real Claude in default mode,
headless (so "ask" is a denial), once without boxery and once pinned in redirect mode.
The command must be allowed in both or denied in both; the few that redirect judges more
strictly stand in STRICTER, each with the reason.
"""
import json
import os

from claude_guard import pinned
from drive import bash
from house import cases

# (name, rules, commands); a command leaves the file `m<number>` when it runs
ROWS = [
    ("nothing allowed", {}, ["touch {m}", "echo x > {m}"]),
    ("a tool allowed", {"allow": ["Bash"]}, ["touch {m}", "touch {m} && echo x", "FOO=1 touch {m}"]),
    ("everything by star", {"allow": ["Bash(*)"]}, ["touch {m}", "true; touch {m}"]),
    ("a prefix", {"allow": ["Bash(touch:*)"]}, [
        "touch {m}", "touch {m} && touch {m}", "touch {m} && rm -f nothing", "touchy {m}", "sh -c 'touch {m}'", "rm -f x; touch {m}",
        "touch {m} | cat", "touch $(echo {m})", "  touch {m}", "FOO=1 touch {m}", "touch {m} > out", "(touch {m})",
        "touch {m} &", "touch `echo {m}`", "timeout 5 touch {m}", "nice touch {m}"]),
    ("a prefix with a word", {"allow": ["Bash(touch {m0}:*)"]}, ["touch {m}", "touch ./{m}"]),
    ("an exact text", {"allow": ["Bash(touch m0)"]}, ["touch {m}", "touch {m} "]),
    ("a wildcard at the end", {"allow": ["Bash(touch *)"]}, ["touch {m}", "touch {m}; ls", "touchy {m}"]),
    ("a wildcard in the middle", {"allow": ["Bash(env * touch *)"]}, ["env A=1 touch {m}", "touch {m}"]),
    ("denied", {"allow": ["Bash"], "deny": ["Bash(touch:*)"]}, [
        "touch {m}", "echo x && touch {m}", "echo > {m}", "FOO=1 touch {m}", "timeout 5 touch {m}", "sh -c 'touch {m}'", "echo $(touch {m})",
        "(touch {m})", "true | touch {m}", "touch {m} &", "command touch {m}", "/usr/bin/touch {m}"]),
    ("denied exactly", {"allow": ["Bash"], "deny": ["Bash(touch m0)"]}, ["touch {m}", "touch {m}"]),
    ("denied with a wildcard", {"allow": ["Bash"], "deny": ["Bash(* --force *)"]}, ["touch {m}", "touch {m}; echo --force x"]),
    ("asked", {"allow": ["Bash"], "ask": ["Bash(touch:*)"]}, ["touch {m}", "echo > {m}", "echo a; touch {m}"]),
    ("asked for all", {"allow": ["Bash(touch:*)"], "ask": ["Bash"]}, ["touch {m}", "echo > {m}"]),
    ("denied for all", {"allow": ["Bash(touch:*)"], "deny": ["Bash"]}, ["touch {m}"]),
    ("allow, ask and deny together", {"allow": ["Bash(touch:*)", "Bash(echo:*)"], "ask": ["Bash(echo ask:*)"], "deny": ["Bash(touch m2)"]}, [
        "touch {m}", "echo ask > {m}", "touch {m}", "echo fine > {m}"]),
    ("rules of other tools", {"allow": ["Read", "Edit(**)"], "deny": ["WebFetch"]}, ["touch {m}"]),
    ("rules about boxery's own text", {"allow": ["Bash(touch:*)"], "deny": ["Bash(ssh:*)"]}, ["touch {m}"]),
]
# commands that run without boxery and are denied with it
STRICTER = {
    # an allow match needs a rule for every part; Claude Code knows harmless programs of its own
    "touch {m} | cat", "touch {m}; ls",
    # a deny match looks into every place that runs a command
    "sh -c 'touch {m}'",
}
SCOPES = ["user", "project", "local"]


def place(session, scope, rules):
    path = {"user": os.path.join(session.home, ".claude/settings.json"),
            "project": os.path.join(session.project, ".claude/settings.json"),
            "local": os.path.join(session.project, ".claude/settings.local.json")}[scope]
    merged = {}
    if os.path.exists(path):
        with open(path) as f:
            merged = json.load(f)
    merged["permissions"] = rules
    session.write(path, merged)


def trust(session):
    """Answer yes to Claude Code's question about the project."""
    session.write(os.path.join(session.home, ".claude.json"),
                  {"hasCompletedOnboarding": True, "projects": {session.project: {"hasTrustDialogAccepted": True}}})


def compare(world, slug, scope, rules, commands, trusted=False):
    rules = {kind: [r.replace("{m0}", "m0") for r in rows] for kind, rows in rules.items()}
    stricter = [c in STRICTER for c in commands]
    commands = [c.replace("{m}", "m%d" % n) for n, c in enumerate(commands)]
    turns = [bash(c) for c in commands] + [{"say": "done"}]
    plain = world.plain(slug + "-plain", turns, permission="default")
    place(plain, scope, rules)
    if trusted:
        trust(plain)
    plain.go()
    ours = pinned(world, slug + "-boxery", turns, "redirect", permission="default")
    place(ours, scope, rules)
    if trusted:
        trust(ours)
    ours.go()
    copy = world.copy_of(ours)
    wrong = []
    for n, command in enumerate(commands):
        without = os.path.exists(os.path.join(plain.project, "m%d" % n))
        within = copy is not None and os.path.exists(os.path.join(copy, "m%d" % n))
        assert not os.path.exists(os.path.join(ours.project, "m%d" % n)), "ran here: " + command
        if without != within and not (stricter[n] and without):
            wrong.append("%r: %s without boxery, %s with; told %r and %r" % (
                command, *("allowed" if x else "denied" for x in (without, within)), plain.results()[n][1][:200],
                ours.results()[n][1][:300]))
    assert not wrong, "\n".join(wrong)


@cases("permissions: {0}", [(name, n, rules, commands) for n, (name, rules, commands) in enumerate(ROWS)])
def _(world, _name, number, rules, commands):
    compare(world, "permission-%d" % number, "user", rules, commands)


@cases("permissions: rules in the {0} file count, in a project that is {1}", [
    (scope, trust) for scope in SCOPES for trust in ("trusted", "not trusted")])
def _(world, scope, trust):
    compare(world, "permission-%s-%s" % (scope, trust.replace(" ", "-")), scope,
            {"allow": ["Bash(touch:*)"], "deny": ["Bash(touch m1)"]}, ["touch {m}", "touch {m}", "echo > {m}"], trust == "trusted")
