"""How a command ends: its exit status, and the one exception for a program that cannot start.

The law: a StartError is caused by a setting or the environment, not by a bug; its message names the cause and what to
do. Every entry point turns it into one line and an exit status.
"""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit statuses of all commands."""

    DONE = 0
    """Done, or the answer is yes."""
    NO = 1
    """The answer is no: refused, not installed, problems found."""
    BAD_USAGE = 2
    """A bad flag, setting or environment; click uses this number too."""
    UNKNOWN = 3
    """The command could not find out, or could not do it: a server or a file was out of reach."""


class StartError(Exception):
    """A setting that cannot be carried out: a port in use, a file that cannot be read. The message is one line."""

    def __init__(self, message: str, *, status: int = ExitStatus.BAD_USAGE) -> None:
        super().__init__(message)
        self.status = status
        """The exit status."""
