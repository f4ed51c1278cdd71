"""The verdicts on a sample of mutants: how it is drawn, its JSON, its tables. Pure.

The law: whether a mutant is in the sample depends on its name and the size of its folder, not on other folders.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from tests.kit.grid import format_grid
from tests.mutants.operators import Mutant

LEAST: Final = 3
"""Mutants of a folder, if it has so many."""
KILLED: Final = "killed"
TIMEOUT: Final = "timeout"
"""It ran for longer than the unchanged source ever would: noticed too."""
SURVIVED: Final = "survived"
GONE: Final = "gone"
"""The function has no such place any more."""


@dataclass(frozen=True)
class Verdict:
    file: str
    """POSIX path inside the tree; the same for `judges`."""
    function: str
    operator: str
    index: int
    line: int
    outcome: str
    killer: str = ""
    """The test that failed, as pytest names it."""
    judges: tuple[str, ...] = ()

    @property
    def noticed(self) -> bool:
        return self.outcome in {KILLED, TIMEOUT}

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.function} {self.operator} {self.index}"


def draw_sample(mutants: Mapping[str, Sequence[Mutant]], *, one_of: int, seed: int) -> list[tuple[str, Mutant]]:
    """One of so many mutants of each folder, rounded up, mixed; always the same for the same sources."""
    folders: dict[PurePosixPath, list[tuple[str, Mutant]]] = defaultdict(list)
    for file, found in mutants.items():
        folders[PurePosixPath(file).parent].extend((file, mutant) for mutant in found)
    drawn: list[tuple[str, Mutant]] = []
    for inside in folders.values():
        inside.sort(key=lambda one: _lot(*one, seed=seed))
        drawn += inside[: max(LEAST, -(-len(inside) // one_of))]
    return sorted(drawn, key=lambda one: _lot(*one, seed=seed))


def _lot(file: str, mutant: Mutant, *, seed: int) -> bytes:
    name = f"{seed} {file} {mutant.function} {mutant.operator} {mutant.index}"
    return hashlib.sha256(name.encode()).digest()


def to_json(verdicts: Iterable[Verdict]) -> str:
    """One line for each module. Judges are numbers in the list `tests`, a killer is `NUMBER::test`."""
    modules: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        modules[verdict.file].append(verdict)
    tests = sorted({test for inside in modules.values() for verdict in inside for test in _files(verdict)})
    numbers = {test: number for number, test in enumerate(tests)}
    rows = []
    for file, inside in modules.items():
        mutants = [
            [one.function, one.operator, one.index, one.line, one.outcome, _short(one.killer, numbers)]
            for one in inside
        ]
        row = {"module": file, "judges": [numbers[test] for test in inside[0].judges], "mutants": mutants}
        rows.append(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
    head = json.dumps({"tests": tests}, indent=0)[:-2]
    return f'{head},\n"modules": [\n' + ",\n".join(rows) + "\n]}\n"


def _files(verdict: Verdict) -> Iterator[str]:
    yield from verdict.judges
    if verdict.killer:
        yield verdict.killer.partition("::")[0]


def _short(killer: str, numbers: Mapping[str, int]) -> str:
    file, colons, test = killer.partition("::")
    return f"{numbers[file]}{colons}{test}" if killer else ""


def from_json(text: str) -> list[Verdict]:
    """Raises ValueError, KeyError or TypeError if it is no record."""
    record = json.loads(text)
    tests = record["tests"]
    verdicts = []
    for row in record["modules"]:
        judges = tuple(tests[number] for number in row["judges"])
        for function, operator, index, line, outcome, killer in row["mutants"]:
            number, colons, test = killer.partition("::")
            whole = f"{tests[int(number)]}{colons}{test}" if killer else ""
            verdicts.append(Verdict(row["module"], function, operator, index, line, outcome, whole, judges))
    return verdicts


def format_table(verdicts: Sequence[Verdict], before: Sequence[Verdict] = ()) -> str:
    """The share that was noticed: of each folder, each package, and all; with `before` also the earlier share."""
    rows = []
    known = {verdict.name: verdict for verdict in before}
    for group, inside in _groups(verdicts):
        counted = [verdict for verdict in inside if verdict.outcome != GONE]
        earlier = [known[verdict.name] for verdict in counted if verdict.name in known]
        rows.append((group, str(len(counted)), *(_share(earlier)[1:] if before else ()), *_share(counted)))
    head = ("", "mutants", *(("before",) if before else ()), "killed", "share")
    return format_grid(head, rows)


def fallen(verdicts: Sequence[Verdict], before: Sequence[Verdict]) -> list[Verdict]:
    """The mutants that were noticed before and are not any more."""
    known = {verdict.name: verdict for verdict in before}
    return [one for one in verdicts if one.outcome == SURVIVED and one.name in known and known[one.name].noticed]


def _groups(verdicts: Sequence[Verdict]) -> Iterator[tuple[str, list[Verdict]]]:
    groups: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        folder = str(PurePosixPath(verdict.file).parent)
        package = verdict.file.partition("/")[0]
        for group in (folder, f"all of {package}", "everything"):
            groups[group].append(verdict)
    yield from sorted(groups.items(), key=lambda item: (item[0] == "everything", item[0].startswith("all "), item[0]))


def _share(verdicts: Sequence[Verdict]) -> tuple[str, str]:
    killed = sum(verdict.noticed for verdict in verdicts)
    return str(killed), f"{killed / len(verdicts):.0%}" if verdicts else "-"
