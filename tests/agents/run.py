#!/usr/bin/env python3
"""Drive the real agents, offline, against a real sshd, and check what really happened.

    run.py [WORD...]     all tests, or those whose name holds one of the words

Prints one line a test and, last, `N passed, N failed`; exits 1 when one failed.
Wants root (for namespaces), the agents of tests/harness/install.sh and a built boxery.
"""
import concurrent.futures
import importlib
import os
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "harness")]
sys.dont_write_bytecode = True

import drive  # noqa: E402
import house  # noqa: E402

MODULES = ["claude_guard", "claude_redirect", "claude_failures", "claude_holes", "claude_permissions",
           "claude_policy", "claude_sync"]
# A run is mostly waiting for node to start; two at once fit two cores.
WORKERS = 2


def main():
    drive.enter_namespaces()
    words = sys.argv[1:]
    for path in (drive.CLAUDE, drive.BOXERY):
        if not os.access(path, os.X_OK):
            raise SystemExit("missing: %s (./tests/run)" % path)
    for module in MODULES:
        importlib.import_module(module)
    chosen = [t for t in house.TESTS if not words or any(word in t.name for word in words)]
    lock = threading.Lock()

    def one(test):
        start = time.monotonic()
        try:
            test.run(world)
            problem = None
        except BaseException as error:  # a test that stops, however, has failed
            problem = error
        with lock:
            took = time.monotonic() - start
            print("%s %s (%.1f s)" % ("ok    " if problem is None else "FAILED", test.name, took), flush=True)
            if problem is not None:
                trace = "".join(traceback.format_exception(problem))
                print("    " + trace.strip().replace("\n", "\n    "), flush=True)
        return problem is None

    start = time.monotonic()
    with house.World() as world:
        print("world: sshd, VM added, redirect proven (%.1f s)" % (time.monotonic() - start), flush=True)
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            answers = list(pool.map(one, chosen))
    passed = sum(answers)
    print("%d passed, %d failed" % (passed, len(answers) - passed), flush=True)
    sys.stdout.flush()
    os._exit(0 if answers and passed == len(answers) else 1)


if __name__ == "__main__":
    main()
