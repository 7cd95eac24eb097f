"""A laptop and a VM in namespaces of their own, and a link between them that can be cut.

    with Place(folder, BOXERY) as place:
        place.run("native", "echo hi")      # a started `boxery run`, as Client
        place.link(False)                   # silence: nothing gets through, nobody is told
        place.reset()                       # both ends are told that the connection is over
        place.in_vm(), place.on_laptop()    # the processes of each side

The VM is OpenSSH's server with its own network, mounts, processes and home; the laptop has
its own network and home. Everything ends with the namespaces' first processes.
"""
import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import threading
import time

LAPTOP, VM = "10.77.0.1", "10.77.0.2"

# The homes are those that passwd(5) names: ssh and sshd look nowhere else. The whole folder
# is a copy: a mount over one file goes when somebody outside replaces that file.
HOMES = r"""
set -eu
mount --make-rprivate /
mkdir "$W/etc.$SIDE"
mount -t tmpfs tmpfs "$W/etc.$SIDE"
cp -a /etc/. "$W/etc.$SIDE"
awk -F: -v OFS=: -v me="$ME" -v home="$W/$SIDE" '$1 == me {$6 = home} {print}' /etc/passwd >"$W/etc.$SIDE/passwd"
mount --bind "$W/etc.$SIDE" /etc
ip link set lo up
"""
LAPTOP_INIT = HOMES + r"""
echo ready
exec cat
"""
VM_INIT = HOMES + r"""
hostname dev-vm
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
echo ready >&2
read -r _
exec "$SSHD" -D -e -f "$W/sshd_config"
"""

SSHD_CONFIG = """ListenAddress {vm}
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/laptop/.ssh/id_ed25519.pub
StrictModes no
UsePAM no
PidFile none
PasswordAuthentication no
PermitRootLogin prohibit-password
UseDNS no
MaxStartups 1000
LogLevel INFO
{lines}
"""

BROKE = "boxery: the connection to %s broke while the command ran; it went on, and nothing of its output is missing"


def find(program):
    """A program's path; system folders too."""
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin")
    if path is None:
        raise SystemExit("missing: %s (./tests/run needs)" % program)
    return path


def eventually(what, check, limit=30.0):
    """Wait until `check` is true, and say how long that took."""
    start = time.monotonic()
    while not check():
        if time.monotonic() - start > limit:
            raise AssertionError("not in %g s: %s" % (limit, what))
        time.sleep(0.01)
    return time.monotonic() - start


def gone(what, found, limit=30.0):
    """Wait until `found` finds nothing, and say how long that took."""
    start = time.monotonic()
    while left := found():
        if time.monotonic() - start > limit:
            raise AssertionError("still there after %g s: %s: %s" % (limit, what, left))
        time.sleep(0.01)
    return time.monotonic() - start


def pause(seconds):
    """How long a state of the scene lasts; nothing is waited for by it."""
    time.sleep(seconds)


class Process:
    """What the kernel says of a process."""

    def __init__(self, pid):
        self.pid = pid
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            self.argv = f.read().decode("utf-8", "surrogateescape").split("\0")[:-1]
        with open("/proc/%d/stat" % pid) as f:
            name, rest = f.read().rsplit(")", 1)
            self.name, fields = name.split("(", 1)[1], rest.split()
            self.state, self.parent = fields[0], int(fields[1])

    def __repr__(self):
        return "%d %s %r" % (self.pid, self.state, self.argv or self.name)

    def memory(self):
        """What it holds now, in KiB; None when it is gone."""
        with contextlib.suppress(OSError), open("/proc/%d/status" % self.pid) as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
        return None

    def files(self):
        """How many files it has open."""
        return len(os.listdir("/proc/%d/fd" % self.pid))


class Client:
    """A `boxery run` that was started, and everything that it prints."""

    def __init__(self, command, environment, feed=None, on_byte=None):
        self.out, self.err, self.on_byte = bytearray(), bytearray(), on_byte
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL if feed is None else subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.threads = [threading.Thread(target=self.read, args=pair)
                        for pair in ((self.process.stdout, self.out), (self.process.stderr, self.err))]
        if feed is not None:
            self.threads.append(threading.Thread(target=self.feed, args=(feed,)))
        for thread in self.threads:
            thread.start()

    def read(self, source, into):
        while chunk := os.read(source.fileno(), 1 << 16):
            into.extend(chunk)
            if into is self.out and self.on_byte:
                self.on_byte(len(into))
        source.close()

    def feed(self, data):
        # who ends early closes its end
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(data)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def kill(self):
        self.process.kill()

    def wait(self, limit=180.0):
        """Its exit status, once all its output is here."""
        status = self.process.wait(limit)
        for thread in self.threads:
            thread.join(limit)
        return status

    def said(self):
        """boxery's own lines."""
        return [line for line in self.err.decode("utf-8", "replace").splitlines()
                if line.startswith(("boxery: ", "error: ", "caused by: ", "hint: "))]


class Place:
    """Laptop, VM and link."""

    vm_init = VM_INIT

    def __init__(self, folder, boxery, sshd_lines="", ssh_lines=""):
        self.folder, self.boxery = os.path.realpath(folder), os.path.abspath(boxery)
        self.sshd_lines, self.ssh_lines = sshd_lines, ssh_lines
        self.me = pwd.getpwuid(os.getuid()).pw_name
        self.laptop = self.vm = None

    def __enter__(self):
        if os.getuid() != 0:
            raise SystemExit("error: these rounds make namespaces\nhint: run them as root")
        self.furnish()
        self.start()
        return self

    def furnish(self):
        """Make what laptop and VM find when they start: keys and configurations."""
        for name in ("laptop/.ssh", "laptop/.config/boxery", "vm", "tmp"):
            os.makedirs(self.at(name), mode=0o700)
        for key in ("host_key", "laptop/.ssh/id_ed25519"):
            subprocess.run([find("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", self.at(key)], check=True)
        self.write("sshd_config", SSHD_CONFIG.format(vm=VM, folder=self.folder, lines=self.sshd_lines))
        self.write("laptop/.ssh/config", self.ssh_lines + "\n")
        with open(self.at("host_key.pub")) as f:
            self.write("laptop/.config/boxery/known_hosts", "%s %s" % (VM, f.read()))
        self.write("laptop/.config/boxery/config.toml", "".join(
            '[vm.%s]\ntarget = "%s@%s"\ndir = "/var/tmp"\npipe = "%s"\n' % (pipe, self.me, VM, pipe)
            for pipe in ("native", "system")))

    def start(self):
        """Bring up laptop, VM and link."""
        self.environment = {"HOME": self.at("laptop"), "TMPDIR": self.at("tmp"), "LANG": "C.UTF-8",
                            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
        self.vm = self.namespaces(self.vm_init, "vm", ["-n", "-m", "-u", "-p", "--mount-proc"], subprocess.PIPE)
        self.laptop = self.namespaces(LAPTOP_INIT, "laptop", ["-n", "-m"], None)
        if "ready" not in self.vm.stderr.readline() or "ready" not in self.laptop.stdout.readline():
            raise SystemExit("no namespaces for %s" % self.folder)
        self.on("laptop", "ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", str(self.vm.pid))
        for side, address in (("laptop", LAPTOP), ("vm", VM)):
            self.on(side, "ip", "address", "add", address + "/24", "dev", "wire")
            self.on(side, "ip", "link", "set", "wire", "up")
        self.serve()
        self.first = {process.pid for process in self.in_vm()}

    def serve(self):
        """Start the server of the VM, now that it has its address."""
        self.vm.stdin.write("go\n")
        self.vm.stdin.flush()
        for line in self.vm.stderr:
            if "Server listening on" in line:
                break
        else:
            raise SystemExit("sshd did not start")
        # read on, so that sshd never waits for us
        self.log = []
        threading.Thread(target=lambda: self.log.extend(self.vm.stderr), daemon=True).start()

    def __exit__(self, *_):
        self.boxery_says("daemon", "stop")
        for process in self.on_laptop():
            if process.pid != self.laptop.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
        for side in (self.laptop, self.vm):
            side.kill()
            side.wait()

    def namespaces(self, script, side, flags, stderr):
        return subprocess.Popen(
            [find("unshare"), *flags, "-f", "--kill-child=KILL", "sh", "-c", script], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
            env={"W": self.folder, "SIDE": side, "ME": self.me, "SSHD": find("sshd"), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})

    def at(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.at(name), "w") as f:
            f.write(text)

    def read(self, name):
        with open(self.at(name)) as f:
            return f.read()

    def enter(self, side):
        return [find("nsenter"), "-t", str(self.laptop.pid if side == "laptop" else self.vm.pid), "-n", "-m", "--"]

    def on(self, side, *command):
        """Run an administrator's command on one side."""
        return subprocess.run(self.enter(side) + list(command), check=True, capture_output=True, text=True).stdout

    # The laptop's user.

    def command(self, *words, program=None):
        return [*self.enter("laptop"), program or self.boxery, *words]

    def boxery_says(self, *words, program=None):
        """Status, stdout and stderr of a verb."""
        done = subprocess.run(self.command(*words, program=program), env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def run(self, pipe, text, feed=None, on_byte=None, program=None):
        command = self.command("run", pipe, "--cwd", "/", "--", "bash", "-c", text, program=program)
        return Client(command, self.environment, feed, on_byte)

    def status(self):
        """What the daemon says of itself; None without one."""
        return json.loads(self.boxery_says("daemon", "status", "--json")[1] or "null")

    def daemon(self):
        """The process of the daemon; None without one."""
        found = [process for process in self.on_laptop() if process.argv[1:3] == ["daemon", "serve"]]
        return found[0] if found else None

    # The link.

    def link(self, up):
        """Let everything through, or nothing: no answer, no error, no end."""
        self.on("vm", "ip", "link", "set", "wire", "up" if up else "down")

    def reset(self, side="laptop"):
        """End every connection, as a router does that forgot it: both ends are told."""
        port = "dport" if side == "laptop" else "sport"
        self.on(side, "ss", "-K", "state", "established", port, "=", "22")

    def connections(self):
        """The connections to the VM that the laptop thinks it has."""
        return self.on("laptop", "ss", "-Htnpo", "state", "established", "dport", "=", "22").splitlines()

    # Processes.

    def kill(self, victim, pids):
        """kill -9 of what `victim` names; it may be gone by now."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def processes(self, side):
        mine = os.readlink("/proc/%d/ns/net" % side.pid)
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            # it may end while it is looked at
            with contextlib.suppress(OSError):
                if os.readlink("/proc/%s/ns/net" % name) == mine:
                    process = Process(int(name))
                    if process.state != "Z":
                        found.append(process)
        return found

    def in_vm(self):
        return self.processes(self.vm)

    def on_laptop(self):
        return self.processes(self.laptop)

    def helpers(self):
        """The helpers that serve a connection."""
        return [p for p in self.in_vm() if p.argv[1:2] == ["serve"] and "helper-" in p.argv[0]]

    def sessions(self):
        """What sshd started for each connection."""
        return [p for p in self.in_vm() if p.name.startswith("sshd") and p.pid not in self.first]

    def of_runs(self):
        """Whatever runs in the VM and is neither sshd's nor a helper that waits."""
        helpers = {p.pid for p in self.helpers()}
        spare = set()
        found = []
        for process in self.in_vm():
            if process.pid in self.first or process.pid in helpers or process.name.startswith("sshd"):
                continue
            if process.argv[1:2] == ["supervise"] and process.parent in helpers and process.parent not in spare:
                # the one that waits for the next run
                spare.add(process.parent)
                continue
            found.append(process)
        return found

    def files(self, side):
        """Every file below a side's home."""
        top = self.at(side)
        return sorted(os.path.relpath(os.path.join(folder, name), top) for folder, _, names in os.walk(top) for name in names)
