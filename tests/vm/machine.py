"""A real Debian VM under qemu in the place of the server of tests/rounds.

    with Machine(folder, BOXERY, image) as place:
        place.become("dev")             # a laptop of its own for each user of the VM
        place.sh("hostname")            # as the VM's root, whatever becomes of the link
        place.restart(), place.rebuild(), place.suspended()

qemu runs in the namespaces that hold the VM's end of the link, so the link is cut as for
any other VM of the rounds. What looks at the VM comes by another way: `sh` and the list of
processes go over a port that only these namespaces have, to a program of ours in the VM.
"""
import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "rounds"))
from place import VM, Client, Place, Process, eventually, find  # noqa: E402
from terminal import Terminal  # noqa: E402

INIT = r"""
set -eu
mount --make-rprivate /
ip link set lo up
echo ready >&2
exec cat
"""

# In the VM, as root: one line of JSON in, one out.
AGENT = r"""
import json, os, subprocess, sys

def look():
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            said = [open("/proc/%s/%s" % (name, part), "rb").read().decode("utf-8", "surrogateescape")
                    for part in ("cmdline", "stat", "cgroup")]
        except OSError:
            continue
        found.append([int(name), *said])
    return found

for line in sys.stdin:
    wish = json.loads(line)
    if wish[0] == "look":
        answer = look()
    else:
        done = subprocess.run(["sh", "-c", wish[1]], capture_output=True, stdin=subprocess.DEVNULL)
        answer = [done.returncode, done.stdout.decode("utf-8", "surrogateescape"),
                  done.stderr.decode("utf-8", "surrogateescape")]
    print(json.dumps(answer), flush=True)
"""

# Only in the VM's own namespaces.
ASIDE = 2222


class Inside(Process):
    """A process of the VM, as its program told."""

    def __init__(self, pid, cmdline, stat, cgroup):
        self.pid, self.argv, self.cgroup = pid, cmdline.split("\0")[:-1], cgroup
        name, rest = stat.rsplit(")", 1)
        self.name, fields = name.split("(", 1)[1], rest.split()
        self.state, self.parent = fields[0], int(fields[1])

    def memory(self):
        return None

    def is_the_systems(self):
        """A thread of the kernel's, or a service."""
        parts = self.cgroup.strip().split("::", 1)[-1]
        return not self.argv and self.parent in (0, 2) or parts.startswith(("/system.slice", "/init.scope")) or "/user@" in parts


class Machine(Place):
    """Laptop, link, and the VM."""

    vm_init = INIT
    clients = ()

    def __init__(self, folder, boxery, image, init="systemd"):
        super().__init__(folder, boxery)
        self.image, self.init, self.user, self.qemu, self.agent = image, init, None, None, None

    # The machine.

    def furnish(self):
        os.makedirs(self.at("laptop"), mode=0o700)
        os.makedirs(self.at("tmp"), mode=0o700)

    def serve(self):
        self.boot()

    def boot(self, init=None):
        """Switch a machine on that has never run before."""
        cpu = ["-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max"]
        with open("/proc/cpuinfo") as f:
            # a /dev/kvm without these doesn't boot a stock kernel
            if {"vmx", "svm"} & set(f.read().split()) and os.access("/dev/kvm", os.W_OK):
                cpu = ["-accel", "kvm", "-cpu", "host"]
        append = "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0"
        if (init or self.init) == "fast":
            append += " init=/usr/sbin/fast-init"
        at = lambda name: os.path.join(self.image, name)  # noqa: E731
        forwards = "".join(",hostfwd=tcp:%s-:22" % address for address in ("%s:22" % VM, "127.0.0.1:%d" % ASIDE))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.at("control"))
        command = [
            *self.enter("vm"), find("setpriv"), "--pdeathsig", "KILL", find("qemu-system-x86_64"), "-machine", "q35", *cpu,
            "-m", "1024", "-smp", "2", "-nodefaults", "-no-user-config", "-display", "none", "-kernel", at("vmlinuz"),
            "-initrd", at("initrd.img"), "-append", append,
            "-drive", "file=%s,format=raw,if=virtio,cache=unsafe,snapshot=on" % at("disk.raw"),
            "-netdev", "user,id=n0,restrict=on" + forwards, "-device", "virtio-net-pci,netdev=n0", "-device", "virtio-rng-pci",
            "-serial", "file:" + self.at("console.log"), "-qmp", "unix:%s,server=on,wait=off" % self.at("control")]
        # where the changes to the disk are written
        environment = {"PATH": self.environment["PATH"], "TMPDIR": self.at("tmp.vm")}
        os.makedirs(self.at("tmp.vm"), exist_ok=True)
        self.qemu = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
        self.answer()

    def answer(self, limit=300):
        """Wait until the VM lets its users in, and start our program there."""
        def up():
            if self.qemu.poll() is not None:
                with open(self.at("console.log"), errors="replace") as f:
                    raise SystemExit("the VM ended: " + f.read()[-500:])
            # pam lets only root in while it boots
            return all(map(self.lets_in, ("root", "dev")))
        took = eventually("the VM answers", up, limit)
        self.agent = subprocess.Popen(self.login("root", "exec python3 -u -c '%s'" % AGENT.replace("'", "'\\''")),
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="surrogateescape")
        self.first = {process.pid for process in self.in_vm()}
        return took

    def login(self, user, text):
        """The command of an administrator who doesn't come over the link."""
        options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=" + self.at("aside"), "BatchMode=yes", "ConnectTimeout=5",
                   "LogLevel=ERROR", "UpdateHostKeys=no", "ControlPath=none"]
        return [*self.enter("vm"), find("ssh"), "-F", "none", "-i", os.path.join(self.image, "id"), "-p", str(ASIDE),
                *(word for option in options for word in ("-o", option)), "%s@127.0.0.1" % user, text]

    def serve_by(self, lines):
        """Give the VM's server more lines of configuration."""
        self.sh("echo '%s' >/etc/ssh/sshd_config.d/more.conf && systemctl reload ssh" % lines)
        eventually("the server serves", lambda: self.lets_in("root"))

    def lets_in(self, user):
        return subprocess.run(self.login(user, "true"), stdin=subprocess.DEVNULL, capture_output=True).returncode == 0

    def off(self):
        """Take its power away."""
        for process in (self.agent, self.qemu):
            if process is not None:
                process.kill()
                process.wait()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.at("aside"))

    def restart(self):
        """`reboot`, as somebody on the VM would."""
        was = self.sh("cat /proc/sys/kernel/random/boot_id")
        self.sh("systemctl --no-block reboot")
        self.agent.wait(120)
        self.answer()
        assert self.sh("cat /proc/sys/kernel/random/boot_id") != was

    def rebuild(self, init="fast"):
        """Another machine from the same image: nothing of the old one is left."""
        self.off()
        self.boot(init)

    @contextlib.contextmanager
    def suspended(self):
        """While the VM sleeps."""
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(self.at("control"))
            lines = control.makefile("rw")

            def say(word):
                lines.write(json.dumps({"execute": word}) + "\n")
                lines.flush()
                # between the answers are events
                while "return" not in (answer := json.loads(lines.readline())):
                    assert "error" not in answer, answer
            assert "QMP" in json.loads(lines.readline())
            say("qmp_capabilities")
            say("stop")
            try:
                yield
            finally:
                say("cont")

    def __exit__(self, *exception):
        self.link(True)
        super().__exit__(*exception)
        self.off()

    # What looks at the VM.

    def ask(self, *wish):
        self.agent.stdin.write(json.dumps(wish) + "\n")
        self.agent.stdin.flush()
        return json.loads(self.agent.stdout.readline())

    def sh(self, text, check=True):
        """Standard output of a shell of the VM's root."""
        code, out, err = self.ask("sh", text)
        assert not check or code == 0, (text, code, out, err)
        return out

    def in_vm(self):
        return [process for process in (Inside(*row) for row in self.ask("look"))
                if process.state != "Z" and not process.is_the_systems()]

    def kill(self, victim, pids):
        if victim in ("session", "helper"):
            self.sh("kill -9 %s || :" % " ".join(map(str, pids)) if pids else ":")
        else:
            super().kill(victim, pids)

    def home(self):
        return "/root" if self.user == "root" else "/home/%s" % self.user

    def read(self, name):
        if name.startswith("vm/"):
            return self.sh("cat '%s/%s'" % (self.home(), name[3:]))
        return super().read(name)

    def write(self, name, text):
        if name.startswith("vm/"):
            encoded = base64.b64encode(text.encode()).decode()
            path = "%s/%s" % (self.home(), name[3:])
            self.sh("echo %s | base64 -d >'%s' && chown %s: '%s'" % (encoded, path, self.user, path))
        else:
            super().write(name, text)

    def everything(self):
        """Every file of the VM that a user can have made, other than by being there."""
        folders = "%s /var/tmp /tmp /dev/shm /opt /srv $(ls -d /run/user/* 2>/dev/null)" % self.home()
        found = self.sh("find %s -xdev -not -path '/run/user/*/systemd*' -print0 2>/dev/null || :" % folders)
        return set(found.split("\0"))

    def escaped(self, token):
        """The processes with `token` as an argument."""
        return [process for process in self.in_vm() if token in process.argv]

    # The laptop.

    def become(self, user):
        """A fresh laptop, whose user has that name on the VM."""
        if self.user is not None:
            self.boxery_says("daemon", "stop")
            shutil.rmtree(self.at("laptop"))
            self.on("laptop", "umount", "/srv")
        self.user = user
        os.makedirs(self.at("laptop/.ssh"), mode=0o700)
        # at a path that the VM has not
        self.on("laptop", "mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/srv")
        self.on("laptop", "mkdir", "-p", self.project())
        shutil.copy(os.path.join(self.image, "id"), self.at("laptop/.ssh/id_ed25519"))
        self.keepalive("")

    def keepalive(self, lines):
        """The user's configuration of ssh."""
        self.boxery_says("daemon", "stop")
        # an emulated VM may take long to make a key
        self.write("laptop/.ssh/config", "ConnectTimeout 60\n%s\n" % lines)

    def project(self, name=""):
        """The project's folder, as the laptop has it."""
        return os.path.join("/srv/work/project", name).rstrip("/")

    def here(self, name):
        """Where we see a file of the project."""
        return "/proc/%d/root%s" % (self.laptop.pid, self.project(name))

    def edit(self, name, content):
        os.makedirs(os.path.dirname(self.here(name)), exist_ok=True)
        with open(self.here(name), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())

    def command(self, *words, program=None):
        return [*self.enter("laptop")[:-1], "--wdns=" + self.project(), "--", program or self.boxery, *words]

    def client(self, pipe, *words):
        """A started `boxery run` of these words, bytes as they are."""
        command = [*map(str.encode, self.command("run", pipe, "--cwd", "/", "--")), *words]
        return self.kept(Client(command, self.environment))

    def run(self, *words, **more):
        return self.kept(super().run(*words, **more))

    def kept(self, client):
        """So that what fails leaves no client behind."""
        self.clients = [other for other in self.clients if other.process.poll() is None] + [client]
        return client

    def tidy(self):
        """After a scenario, however it ended."""
        self.link(True)
        for client in self.clients:
            client.kill()
        # what such a scenario leaves is in the next one's way
        self.kill("helper", [process.pid for process in self.of_runs()])
        self.keepalive("")

    def ended(self, command, feed=None, more=None):
        """Status, stdout and stderr of a program of the laptop's."""
        stdin = {"stdin": subprocess.DEVNULL} if feed is None else {"input": feed}
        done = subprocess.run(command, env=dict(self.environment, **(more or {})), capture_output=True, text=True, timeout=180,
                              **stdin)
        return done.returncode, done.stdout, done.stderr

    def boxery_says(self, *words, program=None, feed=None, more=None):
        return self.ended(self.command(*words, program=program), feed, more)

    def unpin(self):
        """Only a person can."""
        with Terminal(self.command("unpin"), self.environment) as terminal:
            code, said = terminal.end()
        assert code == 0, said

    def says(self, *words, status=0, holds=()):
        """What a verb writes to stdout and stderr, when it ends as it should."""
        code, out, err = self.boxery_says(*words)
        assert code == status, "%s: status %d, not %d: %s%s" % (" ".join(words), code, status, out, err)
        for text in holds:
            assert text in out + err, "%s: no %r in %s%s" % (" ".join(words), text, out, err)
        return out, err
