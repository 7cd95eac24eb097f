"""hung_mount: a FUSE mount whose file system never answers.

    hung_mount.py FOLDER deaf|mute

Mounts itself on FOLDER, prints `mounted`, and goes on until it is killed or its
standard input ends. `deaf` never reads a request, as a stopped daemon does; `mute`
reads every request and answers only the first (FUSE_INIT), as a daemon does whose
network is gone. Wants root in a mount namespace of its own.
"""
import ctypes
import os
import select
import struct
import sys


def main():
    folder, kind = sys.argv[1], sys.argv[2]
    fuse = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = "fd=%d,rootmode=40000,user_id=%d,group_id=%d" % (fuse, os.getuid(), os.getgid())
    if libc.mount(b"hung", folder.encode(), b"fuse", 0, options.encode()) != 0:
        raise SystemExit("cannot mount FUSE on %s: %s" % (folder, os.strerror(ctypes.get_errno())))
    if kind == "mute":
        request = os.read(fuse, 1 << 17)
        _, opcode, unique = struct.unpack_from("<IIQ", request)
        assert opcode == 26, "FUSE_INIT comes first"
        major, minor, readahead, _ = struct.unpack_from("<IIII", request, 40)
        body = struct.pack("<IIIIHHIIHHI28x", major, min(minor, 31), readahead, 0, 12, 10, 1 << 16, 1, 16, 0, 0)
        os.write(fuse, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)
    print("mounted", flush=True)
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    if kind == "mute":
        poll.register(fuse, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == 0:
                return
            os.read(fuse, 1 << 17)


if __name__ == "__main__":
    main()
