"""Compares the kernel's table with the written one beside the changes, and undoes what another program did to it.

The law: changes go first: the table is read and compared in slices, and a repair is one small transaction after
another, each in its turn. What we wrote since the comparison began is left alone. A comparison is only skipped if no
program has changed any table since two that found nothing: one may have missed a change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sidecar.loop.slices import in_slices
from wholeip.agent.update import DesiredTable
from wholeip.agent.written_table import WrittenTable
from wholeip.kernel.nft import Table
from wholeip.ruleset.differences import Difference, find_differences, make_repair
from wholeip.ruleset.ruleset import Ruleset

_CHUNK: Final = 250
"""Elements of one transaction of a repair: a change that waits for it does so for some ten milliseconds."""
_LOOKED_UP: Final = 1_000
"""Missing elements that are looked up one by one, in some 50 ms; a dump lacks few."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of a comparison."""

    known: DesiredTable
    """With this the kernel's table was compared."""
    families: frozenset[int] | None = None
    """The address families of its mappings; None if it was not looked at because no program had changed any table."""
    repaired: bool = False
    unrepairable: bool = False
    """Whether the table is missing or differs in more than elements, so that it must be replaced."""


class Comparison:
    """Compares one table, again and again."""

    def __init__(self, table: Table, written: WrittenTable, on_repaired: Callable[[Ruleset], None]) -> None:
        """`on_repaired` gets the ruleset that another program had left, after each repair, even of a part of it."""
        self._table = table
        self._written = written
        self._on_repaired = on_repaired
        self._clean: tuple[int | None, ...] = ()
        """The kernel's generations at the last comparisons that found nothing; two at most."""

    async def run(self) -> Compared | None:
        """Compare, and repair elements; None if the written table is not known, or is read anew. Raises NftFailed."""
        written = self._written
        async with written.writing:
            known = written.known
            if known is None or written.uncertain:
                return None
            written.begin_noting()
        try:
            return await self._compare(known)
        finally:
            written.end_noting()

    async def _compare(self, known: DesiredTable) -> Compared | None:
        written = self._written
        generation = await self._table.read_generation()
        if generation is not None and self._clean == (generation, generation):
            return Compared(known)
        expected = await in_slices(known.steps(), give_way=written.give_way)
        families = frozenset(version for version in (4, 6) if expected.elements[f"addresses_v{version}"])
        current, differences = await self._look(expected)
        if differences:
            # While the kernel resizes a hash table, a dump may lack an element, and nothing in it says so. It may be
            # another program's too, so that there is no difference.
            before = frozenset(differences)
            current, differences = await self._look(expected)
            differences = differences and [one for one in differences if one in before]
            if current is not None and differences:
                current, differences = await self._look_up(current, differences)
        elif differences is not None and generation == await self._table.read_generation():
            self._clean = (*self._clean[-1:], generation)
        if current is None or differences is None:
            # A transaction may be under way, and its result is not known before it ends.
            async with written.writing:
                return Compared(known, families, unrepairable=True) if written.is_noting else None
        repaired = await self._repair(current, differences)
        return Compared(known, families, repaired)

    async def _look(self, expected: Ruleset) -> tuple[Ruleset | None, list[Difference] | None]:
        """The kernel's ruleset, and in which elements it differs; None: in more than those."""
        give_way = self._written.give_way
        current = await self._table.dump_ruleset(give_way=give_way)
        if current is None or current.static != expected.static:
            return current, None
        return current, await in_slices(find_differences(current, expected), give_way=give_way)

    async def _look_up(self, current: Ruleset, differences: list[Difference]) -> tuple[Ruleset, list[Difference]]:
        """The same with the elements that are there although a dump lacked them.

        On a busy node a resize may last longer than two dumps. A repair would be said of another program, and would end
        flows.
        """
        missing = [(one.collection, one.key) for one in differences if one.present is None]
        found = await self._table.find_elements(missing) if len(missing) <= _LOOKED_UP else {}
        elements = {name: dict(current.elements[name]) for name, _ in found}
        for (name, key), value in found.items():
            elements[name][key] = value
        each = (one._replace(present=found.get((one.collection, one.key), one.present)) for one in differences)
        whole = replace(current, elements={**current.elements, **elements}) if found else current
        return whole, [one for one in each if one.present != one.desired]

    async def _repair(self, current: Ruleset, differences: list[Difference]) -> bool:
        written, repaired = self._written, False
        try:
            for first in range(0, len(differences), _CHUNK):
                async with written.writing:
                    if not written.is_noting:
                        break
                    transaction = make_repair(current.table, written.unwritten(differences[first : first + _CHUNK]))
                    if transaction:
                        await written.apply(transaction)
                        repaired = True
        finally:
            if repaired:
                self._on_repaired(current)
        return repaired
