"""The one exception for a program that cannot start.

The law: a StartError is caused by a setting or the environment, not by a bug; its message names the cause and what to
do. Every entry point turns it into one line and an exit status.
"""

from __future__ import annotations

from sidecar.values.exit_status import ExitStatus


class StartError(Exception):
    """A setting that cannot be carried out: a port in use, a file that cannot be read. The message is one line."""

    def __init__(self, message: str, *, status: int = ExitStatus.BAD_USAGE) -> None:
        super().__init__(message)
        self.status = status
        """The exit status."""
