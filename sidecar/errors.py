"""What a program says when it cannot start. One exception, so that every entry point can turn it into one line.

The law: a StartError is the fault of the caller's setting or surroundings, and its message says which and what to do.
"""

from __future__ import annotations


class StartError(Exception):
    """A setting that cannot be carried out: a port in use, a file that cannot be read. The message is one line."""

    def __init__(self, message: str, *, status: int = 2) -> None:
        super().__init__(message)
        self.status = status
        """The exit status: 2 bad usage, 3 could not find out."""
