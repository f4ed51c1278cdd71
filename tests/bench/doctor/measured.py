"""`python tests/bench/doctor/measured.py FILE COMMAND...`: runs a command, and writes what it used into a file.

The law: nothing but the standard library, because the peak memory of a process begins with that of its parent: this one
stays smaller than any command that it runs (getrusage(2), ru_maxrss).
"""

from __future__ import annotations

import json
import os
import sys
import time


def main(path: str, *command: str) -> None:
    started = time.monotonic()
    process = os.fork()
    if process == 0:
        os.execvp(command[0], command)  # noqa: S606  # the measured command, without a shell
    _, status, used = os.wait4(process, 0)
    seconds = time.monotonic() - started
    found = {
        "status": os.waitstatus_to_exitcode(status),
        "seconds": seconds,
        "cpu": used.ru_utime + used.ru_stime,
        "peak": used.ru_maxrss / 1024,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
