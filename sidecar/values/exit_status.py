"""The exit statuses of all commands, for scripts: a promise to users.

Tested in test_errors.py.
"""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """How a command ended."""

    DONE = 0
    """Done, or the answer is yes."""
    NO = 1
    """The answer is no: refused, not installed, problems found."""
    BAD_USAGE = 2
    """A bad flag, setting or environment; click uses this number too."""
    UNKNOWN = 3
    """The command could not find out, or could not do it: a server or a file was out of reach."""
