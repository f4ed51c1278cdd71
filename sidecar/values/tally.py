"""How much a watching command has seen, and its exit status.

The law: with `--count` the answer is yes if so many were seen, without it if any was. It does not matter what ended the
watching: the count, the seconds, Ctrl-C or the server. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.values.exit_status import ExitStatus


@dataclass(slots=True)
class Tally:
    """What was seen so far."""

    most: int | None = None
    """`--count`: after so many the command ends; None is no limit."""
    seen: int = 0

    def add(self) -> None:
        """One more was seen."""
        self.seen += 1

    @property
    def is_complete(self) -> bool:
        """Whether as many were seen as were asked for."""
        return self.most is not None and self.seen >= self.most

    @property
    def status(self) -> ExitStatus:
        """0 if enough were seen, else 1."""
        return ExitStatus.DONE if self.seen >= (self.most or 1) else ExitStatus.NO
