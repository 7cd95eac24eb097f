"""Sends bytes through `boxery run`, down and up, over both pipes to a real sshd and
to the embedded VM, and fails when the client or its daemon ever held more than 64 MiB of
memory.

    long_pipes.py BOXERY MEBIBYTES
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

LIMIT_KIB = 64 * 1024


class Sshd:
    """OpenSSH's server, started per connection behind a port of our own."""

    def __init__(self, folder):
        sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
        if sshd is None:
            sys.exit("error: this round needs sshd\nhint: apt-get install openssh-server")
        os.makedirs("/run/sshd", exist_ok=True)
        for name in ("host", "key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(command, check=True)
        config = folder / "sshd_config"
        config.write_text(
            f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/key.pub\n"
            "StrictModes no\nUsePAM no\nPidFile none\nLogLevel QUIET\n"
        )
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.command = [sshd, "-i", "-f", str(config)]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            child = subprocess.Popen(
                self.command, stdin=connection, stdout=connection, stderr=subprocess.DEVNULL
            )
            connection.close()
            threading.Thread(target=child.wait, daemon=True).start()


def peak(pid):
    """The most memory that the process ever held, in KiB; 0 when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    lines = [line for line in text.splitlines() if line.startswith("VmHWM:")]
    return int(lines[0].split()[1]) if lines else 0


def processes_of(program):
    """Every process that runs this file: the client, the daemon, the embedded VM."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.samefile(f"/proc/{pid}/exe", program):
                found.append(int(pid))
        except OSError:
            pass  # it has ended, or is the kernel's
    return found


def send(boxery, environment, vm, direction, size):
    remote = ["head", "-c", str(size), "/dev/zero"] if direction == "down" else ["wc", "-c"]
    command = [boxery, "run", vm, "--cwd", "/", "--", *remote]
    source = None
    if direction == "up":
        source = subprocess.Popen(["head", "-c", str(size), "/dev/zero"], stdout=subprocess.PIPE)
    start = time.monotonic()
    client = subprocess.Popen(
        command,
        env=environment,
        stdin=source.stdout if source else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    if source:
        source.stdout.close()
    most, done = 0, threading.Event()

    def watch():
        nonlocal most
        while not done.wait(0.05):
            most = max([most, *map(peak, processes_of(boxery))])

    watcher = threading.Thread(target=watch)
    watcher.start()
    received, tail = 0, b""
    while chunk := os.read(client.stdout.fileno(), 1 << 20):
        received += len(chunk)
        tail = chunk[-64:]
    status = client.wait()
    done.set()
    watcher.join()
    seconds = time.monotonic() - start
    arrived = received if direction == "down" else int(tail or b"0")
    return status, arrived, most, seconds


def main():
    boxery, mebibytes = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    size = mebibytes << 20
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        home, config = folder / "home", folder / "home/.config/boxery"
        config.mkdir(parents=True)
        sshd = Sshd(folder)
        agent = subprocess.Popen(["ssh-agent", "-D", "-a", f"{folder}/agent"], stdout=subprocess.PIPE)
        agent.stdout.readline()
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "SSH_AUTH_SOCK": f"{folder}/agent",
        }
        subprocess.run(["ssh-add", "-q", f"{folder}/key"], env=environment, check=True)
        host = (folder / "host.pub").read_text()
        (config / "known_hosts").write_text(f"[127.0.0.1]:{sshd.port} {host}")
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True)
        target = f"{user.stdout.strip()}@127.0.0.1:{sshd.port}"
        text = "".join(
            f'[vm.{pipe}]\ntarget = "{target}"\ndir = "/tmp"\npipe = "{pipe}"\n'
            for pipe in ("native", "system")
        )
        text += '[vm.embedded]\ntarget = "embedded"\ndir = "/root"\n'
        (config / "config.toml").write_text(text)
        print(f"{'pipe':<10}{'way':<6}{'MiB':>8}{'MiB/s':>8}{'peak MiB':>10}")
        for vm in ("native", "system", "embedded"):
            for direction in ("down", "up"):
                status, arrived, most, seconds = send(boxery, environment, vm, direction, size)
                well = status == 0 and arrived == size and 0 < most < LIMIT_KIB
                failed = failed or not well
                print(
                    f"{vm:<10}{direction:<6}{arrived >> 20:>8}{mebibytes / seconds:>8.0f}"
                    f"{most / 1024:>10.1f}{'' if well else '  FAILED'}",
                    flush=True,
                )
        agent.kill()
        agent.wait()
        shutil.rmtree(home / ".local/state/boxery/embedded", ignore_errors=True)
    sys.exit(1 if failed else 0)


main()
