"""vm: a real OpenSSH server in namespaces of its own, to stand for a VM.

    with Vm(folder) as vm:          # folder: empty, ours
        vm.port, vm.fingerprint, vm.auth_sock, vm.target
        vm.see("/abs/path/on/the/vm")   # where this side sees that file
        vm.commands()                   # every `bash -c TEXT` that ran there

The server has its own mount, process and host name space: another home folder,
another machine id, an empty /tmp, and the folders of the tests hidden; so a file
that a command makes is made either there or here, never both. Its bash is the real
one behind a recorder, so that the text that arrives can be compared byte for byte.
"""
import os
import pwd
import socket
import subprocess

# One file a start, named by the process, so that parallel starts never mix.
RECORDER = r"""#!/bin/sh
printf '%%s\0' "$(pwd -P)" "$(hostname)" "$@" >"%(log)s/$$"
exec "%(bash)s" "$@"
"""

INIT = r"""
set -eu
mount --make-rprivate /
hostname dev-vm
mount -t tmpfs tmpfs "$W/etc"
cp -a /etc/. "$W/etc/"
echo 0123456789abcdef0123456789abcdef >"$W/etc/machine-id"
mount --bind "$W/etc" /etc
mount --bind "$W/home/.vm/recorder" "$BASH_PATH"
mount --bind "$W/home" "$VM_HOME"
if [ -d "$HIDE" ]; then mount -t tmpfs tmpfs "$HIDE"; fi
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd
mount -t tmpfs -o mode=1777 tmpfs /tmp
cd /
exec "$SSHD" -D -e -f "$VM_HOME/.vm/sshd_config"
"""


def find(program):
    """A program's path; system folders too."""
    for folder in os.environ.get("PATH", "").split(":") + ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]:
        path = os.path.join(folder, program)
        if os.access(path, os.X_OK):
            return path
    raise SystemExit("missing: %s (./tests/run needs)" % program)


def free_port():
    """A port that nobody listens on in this network namespace."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Vm:
    """The server, its key pair, and an ssh-agent that holds the user's key."""

    def __init__(self, folder, hide):
        self.folder, self.hide = folder, hide
        self.home = pwd.getpwuid(os.getuid()).pw_dir       # the home of the VM's user, as the VM has it
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.server = self.agent = None

    def __enter__(self):
        private = os.path.join(self.folder, "home/.vm")
        os.makedirs(os.path.join(private, "started"))
        os.makedirs(os.path.join(self.folder, "etc"))
        inside = os.path.join(self.home, ".vm")
        for name in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", os.path.join(private, name)],
                           check=True)
        os.rename(os.path.join(private, "user_key"), os.path.join(self.folder, "user_key"))
        os.rename(os.path.join(private, "user_key.pub"), os.path.join(private, "authorized_keys"))
        bash = os.path.realpath(find("bash"))
        with open(bash, "rb") as f, open(os.path.join(private, "bash"), "wb") as copy:
            copy.write(f.read())
        with open(os.path.join(private, "recorder"), "w") as f:
            f.write(RECORDER % {"log": os.path.join(inside, "started"), "bash": os.path.join(inside, "bash")})
        for name in ("bash", "recorder"):
            os.chmod(os.path.join(private, name), 0o755)
        self.port = free_port()
        with open(os.path.join(private, "sshd_config"), "w") as f:
            f.write("\n".join([
                "ListenAddress 127.0.0.1", "Port %d" % self.port, "HostKey %s/host_key" % inside,
                "AuthorizedKeysFile %s/authorized_keys" % inside, "StrictModes no", "UsePAM no", "PidFile none",
                "PasswordAuthentication no", "PermitRootLogin prohibit-password", "UseDNS no", "MaxStartups 200",
                "MaxSessions 200", "LogLevel INFO", ""]))
        env = {"W": self.folder, "VM_HOME": self.home, "HIDE": self.hide, "BASH_PATH": bash, "SSHD": find("sshd"),
               "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.server = subprocess.Popen(
            ["unshare", "-m", "-u", "-p", "-f", "--mount-proc", "--kill-child=KILL", "sh", "-c", INIT],
            env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = []
        for line in self.server.stderr:
            said.append(line)
            if "Server listening on" in line:
                break
        else:
            raise SystemExit("sshd did not start:\n" + "".join(said))
        # keep reading, so that sshd never waits for us
        self.log = open(os.path.join(self.folder, "sshd.log"), "w")
        self.drain = subprocess.Popen(["cat"], stdin=self.server.stderr, stdout=self.log)
        shown = subprocess.run(["ssh-keygen", "-l", "-f", os.path.join(private, "host_key.pub")], check=True,
                               capture_output=True, text=True).stdout
        self.fingerprint = shown.split()[1]
        self.auth_sock = os.path.join(self.folder, "agent")
        started = subprocess.run(["ssh-agent", "-s", "-a", self.auth_sock], check=True, capture_output=True, text=True).stdout
        self.agent = int(started.split("SSH_AGENT_PID=")[1].split(";")[0])
        subprocess.run(["ssh-add", "-q", os.path.join(self.folder, "user_key")], check=True, stdin=subprocess.DEVNULL,
                       env={"SSH_AUTH_SOCK": self.auth_sock, "PATH": os.environ["PATH"]})
        self.target = "%s@127.0.0.1:%d" % (self.user, self.port)
        return self

    def __exit__(self, *_):
        if self.server is not None:
            self.server.kill()
            self.server.wait()
            self.drain.wait()
        if self.agent is not None:
            os.kill(self.agent, 15)

    def see(self, path):
        """Where this side sees the file that the VM has at `path` (below its home)."""
        assert path == self.home or path.startswith(self.home + "/"), path
        return os.path.join(self.folder, "home", os.path.relpath(path, self.home))

    def commands(self):
        """[{argv, cwd, host}] of every bash that was started on the VM, oldest first."""
        folder, found = self.see(self.home + "/.vm/started"), []
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                cwd, host, *argv = f.read().decode("utf-8", "surrogateescape").split("\0")[:-1]
            found.append((os.stat(path).st_mtime_ns, {"argv": argv, "cwd": cwd, "host": host}))
        return [start for _, start in sorted(found, key=lambda pair: pair[0])]
