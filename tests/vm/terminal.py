"""A terminal for a verb: the other end of a pseudo-terminal."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time


class Terminal:
    """A program in a terminal of its own, and what it has written there."""

    def __init__(self, command, environment):
        self.person, terminal = pty.openpty()
        self.said = b""
        self.resize(24, 80)
        self.process = subprocess.Popen(["setsid", "--ctty", *command], env=dict(environment, TERM="xterm-256color"),
                                        stdin=terminal, stdout=terminal, stderr=terminal)
        os.close(terminal)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.person)

    def resize(self, rows, columns):
        fcntl.ioctl(self.person, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.person, text.encode())

    def read(self, limit):
        """Whether something came."""
        if not select.select([self.person], [], [], limit)[0]:
            return False
        try:
            came = os.read(self.person, 1 << 16)
        except OSError:
            # nobody has the terminal any more
            return False
        self.said += came
        return bool(came)

    def until(self, text, limit=60.0):
        """Wait for `text`; everything up to its end, which isn't looked at again."""
        deadline = time.monotonic() + limit
        while (at := self.said.find(text.encode())) < 0:
            assert self.read(max(0, deadline - time.monotonic())), "no %r in %r" % (text, self.said)
        at += len(text.encode())
        before, self.said = self.said[:at], self.said[at:]
        return before.decode("utf-8", "replace")

    def end(self):
        """Its exit status, and the rest of what it wrote."""
        while self.read(60):
            pass
        return self.process.wait(60), self.said.decode("utf-8", "replace")
