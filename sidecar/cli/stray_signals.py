"""Signals that would end a program at once, without a drain, and must not: SIGHUP, SIGUSR1, SIGUSR2 and SIGALRM.

The law: such a signal gets a handler that does nothing; it is not ignored, because child processes would inherit that.
The module imports nothing slow, so that a program can call it first.
"""

from __future__ import annotations

import signal
from typing import Final

STRAY: Final = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)


def survive_stray_signals() -> None:
    """From now on these signals end nothing. One that the caller ignored, as nohup does, stays ignored."""
    for number in STRAY:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _do_nothing)


def _do_nothing(_number: int, _frame: object) -> None:
    pass
