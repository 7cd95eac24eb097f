"""Edit on the laptop, then run in the VM: nothing is stale, and what a run wrote is here."""
import hashlib
import os
import shutil
import stat
import subprocess
import time

from place import Place

# What a run tells of everything in its folder: kind, executable bit, content.
TELL = r"""
find . -mindepth 1 ! -path './.boxery*' ! -path './built*' -printf '%y %m %p\n' | LC_ALL=C sort | while read -r kind mode path; do
    case $kind in
        f) case $mode in *[157]??) x=x ;; *) x=- ;; esac; printf '%s %s %s\n' "$(sha256sum <"$path" | cut -d' ' -f1)" "$x" "$path" ;;
        l) printf 'link %s %s\n' "$(readlink "$path")" "$path" ;;
    esac
done
"""


def told(project):
    """The same of the project here."""
    lines = []
    for folder, folders, names in os.walk(project):
        for name in names + [name for name in folders if os.path.islink(os.path.join(folder, name))]:
            path = os.path.join(folder, name)
            shown = "./" + os.path.relpath(path, project)
            if shown.startswith("./.boxery") or shown.startswith("./built"):
                continue
            if os.path.islink(path):
                lines.append((shown, "link %s %s" % (os.readlink(path), shown)))
                continue
            with open(path, "rb") as f:
                digest = hashlib.sha256(f.read()).hexdigest()
            executable = "x" if os.stat(path).st_mode & stat.S_IXUSR else "-"
            lines.append((shown, "%s %s %s" % (digest, executable, shown)))
    return sorted(line for _, line in lines)


class Project:
    """A project on the laptop, pinned to the VM over one pipe."""

    def __init__(self, place, pipe):
        self.place, self.pipe, self.folder = place, pipe, place.at("laptop/project-" + pipe)
        os.mkdir(self.folder)
        self.says("pin", pipe, "--drift", "sync")

    def says(self, *words, limit=300):
        # Who enters a mount namespace is at its top.
        there = ["sh", "-c", 'cd "$0" && exec "$@"', self.folder, self.place.boxery]
        done = subprocess.run([*self.place.enter("laptop"), *there, *words], env=self.place.environment, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=limit)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def run(self, text):
        return self.says("run", "--", "bash", "-c", text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def files(self):
        found = []
        for folder, folders, names in os.walk(self.folder):
            if ".boxery-stage" in folders:
                folders.remove(".boxery-stage")
            found.extend(os.path.join(folder, name) for name in names)
        return sorted(found)


def edit(project, rng):
    """One random edit, as editors and people make them; its name."""
    # What the runs write is theirs.
    files = [path for path in project.files() if not os.path.islink(path) and not path.startswith(project.path("made/"))]
    how = rng.choice(("same size", "older", "saved", "new", "new", "renamed", "deleted", "mode", "link", "folder", "kind"))
    name = project.path(rng.choice(("", "src/", "src/deep/")) + "f%d" % rng.randrange(30))
    path = rng.choice(files) if files else name
    os.makedirs(project.path("src/deep"), exist_ok=True)
    text = rng.randbytes(rng.choice((0, 5, 200, 70_000)))
    if how in ("same size", "older") and files:
        text = rng.randbytes(os.path.getsize(path))
        with open(path, "r+b") as f:
            f.write(text)
        if how == "older":
            past = time.time() - rng.randrange(10**6)
            os.utime(path, (past, past))
    elif how == "saved" and files:
        with open(path + "~", "wb") as f:
            f.write(text)
        os.replace(path + "~", path)
    elif how == "renamed" and files:
        if not os.path.isdir(name):
            os.replace(path, name)
    elif how == "deleted" and files:
        os.unlink(path)
    elif how == "mode" and files:
        os.chmod(path, os.stat(path).st_mode ^ 0o111)
    elif how == "link":
        if not os.path.lexists(name):
            os.symlink(rng.choice(("f1", "/nowhere", "src")), name)
    elif how == "folder":
        other = project.path("other")
        if os.path.isdir(other):
            shutil.rmtree(other)
        else:
            os.rename(project.path("src"), other)
    elif how == "kind" and files:
        os.unlink(path)
        os.mkdir(path)
        with open(os.path.join(path, "inside"), "wb") as f:
            f.write(text)
    elif not os.path.isdir(name):
        with open(name, "wb") as f:
            f.write(text)
    return how


def edits(folder, boxery, rng, count):
    """Every run sees exactly the project as it is here, and what it wrote is here after it"""
    with Place(folder, boxery) as place:
        projects = [Project(place, pipe) for pipe in ("native", "system")]
        took = []
        for number in range(count):
            project = projects[number % 2]
            hows = [edit(project, rng) for _ in range(rng.randrange(1, 6))]
            want, wrote = told(project.folder), "%d %d" % (number, rng.randrange(10**9))
            start = time.monotonic()
            status, out, err = project.run(TELL + "mkdir -p made; echo '%s' >made/%d; exit 7" % (wrote, number % 5))
            took.append(time.monotonic() - start)
            assert (status, err) == (7, ""), "round %d %s: %d %s" % (number, hows, status, err)
            stale = set(want) ^ set(out.splitlines())
            assert not stale, "round %d %s: stale: %s" % (number, hows, sorted(stale))
            with open(project.path("made/%d" % (number % 5))) as f:
                assert f.read().strip() == wrote, "round %d: what the run wrote isn't here" % number
        for project in projects:
            status, out, err = project.says("drift")
            assert status == 0, (out, err)
    return "none stale, none missing; half of the runs under %.0f ms" % (1000 * sorted(took)[len(took) // 2])


MAIN = "fn main() { std::process::exit(%d) }\n"
MANIFEST = '[package]\nname = "built"\nversion = "0.1.0"\nedition = "2021"\n'
MAKE = "built: main.c\n\tcc -o built main.c\n\t@echo compiled\n"


def builds(folder, boxery, rng, count):
    """After an edit with any time, cargo and make in the VM build the new code, and then nothing"""
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True).stdout.strip()
    with Place(folder, boxery) as place:
        project = Project(place, "native")
        os.mkdir(project.path("src"))
        for name, text in (("Cargo.toml", MANIFEST), ("Makefile", MAKE), (".gitignore", "target/\nbuilt\n")):
            with open(project.path(name), "w") as f:
                f.write(text)
        cargo = "PATH=%s/bin:$PATH; export CARGO_HOME=$PWD/target/home; cargo build --offline 2>&1" % sysroot
        for number in range(count):
            want = 10 + number % 90
            for name, text in (("src/main.rs", MAIN % want), ("main.c", "int main(void) { return %d; }\n" % want)):
                with open(project.path(name), "w") as f:
                    f.write(text)
                if rng.random() < 0.5:
                    past = time.time() - rng.randrange(10**6)
                    os.utime(project.path(name), (past, past))
            for build, program, did in ((cargo, "target/debug/built", "Compiling"), ("make", "./built", "compiled")):
                status, out, err = project.run("%s && %s" % (build, program))
                assert status == want and did in out, "build %d: %d %s %s" % (number, status, out, err)
                status, out, err = project.run(build)
                assert status == 0 and did not in out, "build %d did something twice: %s %s" % (number, out, err)
        assert not os.path.exists(project.path("target")) and not os.path.exists(project.path("built"))
    return "each build had the new code, each second one did nothing"
