"""A part of the whole run: one command that measures, how it is called for the page, and how its JSON is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docs.speed.run import Row
from tests.bench.whole.plan import Cost
from tests.kit.programs import find_program


@dataclass(frozen=True, slots=True)
class Part:
    """One command."""

    name: str
    module: str
    title: str
    about: str
    read: Callable[[Mapping[str, Any]], Iterator[Row]]
    cost: Cost
    arguments: Sequence[str] = ()
    """For the page; the command's own defaults may measure more."""
    quick: Sequence[str] = ()
    """Added by --quick: as short as can be, to see whether everything works."""
    rounds: str = "--rounds"
    """The option with this number; empty if the command has none."""
    needs: Sequence[str] = ()
    """Programs without which nothing can be measured."""
    root: bool = False
    faults: Callable[[Mapping[str, Any]], Iterable[str]] = lambda _: ()
    """What was not measured and has no row on the page that could say so, from the JSON."""

    def command(self, rounds: int, *, quick: bool) -> list[str]:
        """The arguments for so many rounds."""
        counted = [self.rounds, str(rounds)] if self.rounds else []
        return ["-m", self.module, *self.arguments, *counted, *(self.quick if quick else ())]

    def obstacle(self) -> str:
        """Why it cannot be measured here; empty if it can."""
        if self.root and os.geteuid() != 0:
            return "network namespaces take root"
        missing = [name for name in self.needs if find_program(name) is None]
        return f"not installed: {', '.join(missing)} (`make peers` brings them)" if missing else ""
