"""How many queries were shown, and the exit status that follows from it.

The law: pure. The status says whether the user saw what was asked for: a count if there was one, else any query.
"""

from __future__ import annotations

from sidecar.values.exit_status import ExitStatus


class Tally:
    """Counts what is shown; `wanted`: how many are enough, None if the user decides."""

    def __init__(self, wanted: int | None = None) -> None:
        self._wanted = wanted
        self.shown = 0

    def add(self) -> None:
        """Count one that is shown."""
        self.shown += 1

    @property
    def is_complete(self) -> bool:
        """Whether nothing more is to be shown."""
        return self._wanted is not None and self.shown >= self._wanted

    @property
    def status(self) -> ExitStatus:
        """The exit status if the command ends now."""
        return ExitStatus.DONE if self.shown >= (self._wanted or 1) else ExitStatus.NO
