"""A VM's life with boxery: looked at, rebuilt, left."""
from place import gone
from terminal import Terminal


def examined(place, pipe):
    """`vm doctor` finds every step well, and names the machine's own id"""
    place.says("vm", "doctor", pipe, holds=("host key", "helper", "paths"))
    place.says("vm", "show", pipe, "--json", holds=(place.sh("cat /etc/machine-id").strip(),))


def renewed(place):
    """A rebuilt VM is refused by every verb until a person says that it was rebuilt"""
    was, was_key = place.sh("cat /etc/machine-id").strip(), fingerprint(place)
    place.rebuild()
    now, now_key = place.sh("cat /etc/machine-id").strip(), fingerprint(place)
    assert was != now and was_key != now_key, (was, was_key)
    # what this user finds on it
    place.before = place.everything()
    for pipe in ("native", "system"):
        for words, status in ((("run", pipe, "--cwd", "/", "--", "touch", "/tmp/no"), 125), (("drift", pipe), 2),
                              (("vm", "seed", pipe), 125), (("cp", "%s:/etc/hostname" % pipe, "."), 125),
                              (("jobs", "list", pipe), 125)):
            place.says(*words, status=status, holds=("the host key of", "`boxery vm renew %s`" % pipe))
    assert place.sh("ls /tmp/no 2>/dev/null || echo none") == "none\n"
    renew = place.command("vm", "renew", "native")
    code, _, err = place.boxery_says("vm", "renew", "native")
    assert code == 1 and "nobody can be asked" in err, (code, err)
    for answer, want in (("n", 1), ("y", 0)):
        with Terminal(renew, place.environment) as terminal:
            said = terminal.until("[y/N] ")
            terminal.type(answer + "\n")
            code, rest = terminal.end()
        assert code == want, (code, said, rest)
    for shown in (was, now, was_key, now_key):
        assert shown in said + rest, "no %s in %s" % (shown, said + rest)
    with Terminal(place.command("vm", "renew", "system"), place.environment) as terminal:
        said = terminal.until("[y/N] ")
        terminal.type("y\n")
        code, rest = terminal.end()
        assert code == 0, (said, rest)
    for pipe in ("native", "system"):
        assert place.says("run", pipe, "--cwd", "/", "--", "echo", "hi")[0] == "hi\n"


def fingerprint(place):
    return place.sh("ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub").split()[1]


def left(place):
    """`uninstall` leaves nothing of boxery on the VM but the user's copies"""
    place.says("uninstall", "--yes")
    gone("what boxery ran", lambda: place.helpers() + place.of_runs())
    home = place.home()
    # the copies; what the user's own shell wrote; empty folders that belong to nobody
    spared = {home + name for name in ("/.bash_history", "/.cache", "/.local", "/.local/state")}
    kept = sorted(path for path in place.everything() - place.before - spared
                  if not path.startswith((home + "/boxery", "/srv/work")) and "/systemd-private-" not in path)
    assert not kept, kept
    place.says("uninstall", "--yes", "--purge")
    assert not [name for name in place.files("laptop") if "boxery" in name], place.files("laptop")
