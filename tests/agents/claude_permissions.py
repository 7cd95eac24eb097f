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
# (name, rules, commands) about files; of a command that may run, the output is compared too
FILES = {"secret.txt": "s3cret\n", "other": "o\n", "key.pem": "k\n", "sec/x": "s3cret\n", "sub/y": "y\n"}
FILE_ROWS = [
    ("denied to Read", {"allow": ["Bash"], "deny": ["Read(./secret.txt)", "Read(./sec/**)", "Read(**/*.pem)"]}, [
        "cat secret.txt", "cat ./sub/../secret.txt", "head -1 secret.txt", "sed -n p secret.txt", "grep s secret.txt", "cat < secret.txt",
        "cat sec/x", "ls sec", "ls sec/*", "cat key.pem", "cd sec && cat x", "F=secret.txt; cat $F", "nice cat 'sec'ret.txt", "sort -o secret.txt other",
        "git diff --no-index secret.txt other", "cat SECRET.TXT", "cp secret.txt copy", "mv secret.txt moved", "sed -i s/s/t/ secret.txt",
        "cat other", "cat o*", "grep -r y sub", "cd sub && cat y", "echo secret.txt", "ls", "find . -name secret.txt", "test -f secret.txt",
        "cat *", "cat $NOTHING other", "touch new && rm new", "head -1 sub/y > copy2", "true && echo x | wc -l", "cp other secret.txt",
        "/bin/cat secret.txt", "bash -c 'cat secret.txt'", "cat se?ret.txt", "cat {secret.txt,other}", "cat $PWD/secret.txt",
        "while read x; do :; done < secret.txt", "echo $(cat secret.txt)", "dd if=secret.txt status=none", "for f in secret.txt; do cat $f; done",
        "ln -s secret.txt link"]),
    ("denied to Edit", {"allow": ["Bash"], "deny": ["Edit(./secret.txt)", "Edit(./sec/**)"]}, [
        "echo z > secret.txt", "echo z >> secret.txt", "echo z 2> secret.txt", "echo z &> secret.txt", "sed -i s/s/t/ secret.txt",
        "cp other secret.txt", "mv other secret.txt", "rm secret.txt", "tee secret.txt < other", "touch sec/new", "mkdir sec/n", "rm -r sec",
        "cat secret.txt", "grep s secret.txt", "sed -n p sec/x", "ls sec", "echo z > new", "cp other new2", "cat sec/x | wc -c", "echo z 2>&1 >/dev/null",
        "cp secret.txt copy", "truncate -s 0 secret.txt", "F=secret.txt; echo z > $F", "bash -c 'echo z > secret.txt'", "dd of=secret.txt if=other status=none"]),
    ("denied to tools without a path", {"allow": ["Bash"], "deny": ["Read", "Edit", "Grep(*)"]}, ["cat secret.txt", "echo z > secret.txt", "grep s secret.txt"]),
    ("asked for", {"allow": ["Bash"], "ask": ["Read(./secret.txt)", "Edit(./other)"]}, ["cat other", "cat secret.txt", "echo z > other", "echo z > new"]),
]
# commands that run without boxery and are denied with it
FILE_STRICTER = {
    "denied to Read": {"/bin/cat secret.txt", "bash -c 'cat secret.txt'", "cat se?ret.txt", "cat {secret.txt,other}", "cat $PWD/secret.txt",
                       "while read x; do :; done < secret.txt", "echo $(cat secret.txt)", "dd if=secret.txt status=none",
                       "for f in secret.txt; do cat $f; done", "ln -s secret.txt link"},
    "denied to Edit": {"truncate -s 0 secret.txt", "F=secret.txt; echo z > $F", "bash -c 'echo z > secret.txt'",
                       "dd of=secret.txt if=other status=none"},
    # without boxery such a rule asks about the file tools alone
    "asked for": {"cat secret.txt", "echo z > other"},
}
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


@cases("permissions about files: {0}", [(name, n, rules, commands) for n, (name, rules, commands) in enumerate(FILE_ROWS)])
def _(world, name, number, rules, commands):
    told = []
    for kind in ("plain", "boxery"):
        slug, turns = "files-%d-%s" % (number, kind), [bash(c) for c in commands] + [{"say": "done"}]
        start = world.plain if kind == "plain" else world.session
        session = start(slug, turns, permission="default", timeout=300)
        session.env["CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR"] = "1"
        for path, text in FILES.items():
            session.write(os.path.join(session.project, path), text)
        if kind == "boxery":
            session.boxery("pin", "dev-native", "--redirect", "--drift", "off")
            session.boxery("vm", "seed", "dev-native")
        place(session, "user", rules)
        told.append(session.go().results())
    wrong = []
    for command, (_, without), (_, within) in zip(commands, *told):
        without, within = ["denied" if is_denial(text) else text for text in (without, within)]
        is_stricter = command in FILE_STRICTER.get(name, ()) and within == "denied" != without
        if ("denied" in (without, within) and without != within) and not is_stricter:
            wrong.append("%r: %r without boxery, %r with" % (command, without[:200], within[:200]))
        if without == within and command in FILE_STRICTER.get(name, ()):
            wrong.append("%r: no stricter with boxery" % command)
    assert not wrong, "\n".join(wrong)


def is_denial(text):
    return any(words in text for words in ("has been denied", "blocked by a deny rule", "denies this command", "requires approval",
                                           "wants to be asked"))


@cases("permissions: rules in the {0} file count, in a project that is {1}", [
    (scope, trust) for scope in SCOPES for trust in ("trusted", "not trusted")])
def _(world, scope, trust):
    compare(world, "permission-%s-%s" % (scope, trust.replace(" ", "-")), scope,
            {"allow": ["Bash(touch:*)"], "deny": ["Bash(touch m1)"]}, ["touch {m}", "touch {m}", "echo > {m}"], trust == "trusted")
