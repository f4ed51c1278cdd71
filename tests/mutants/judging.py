"""The verdict on a mutant: which tests run with its source, and whether the failing test passes without it.

The law: a test that fails with the unchanged sources notices nothing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from tests.mutants.court import Court, Run
from tests.mutants.judges import Judges
from tests.mutants.operators import Mutant, mutants_of
from tests.mutants.record import GONE, KILLED, SURVIVED, TIMEOUT, Verdict


class NoCourt(click.ClickException):
    """Tests cannot be run at all; the message says which."""

    exit_code = 3


class Judging:
    """Judges the mutants of one tree in one court; remembers how tests ended with the unchanged sources."""

    def __init__(self, tree: Path, court: Court, judges: Judges) -> None:
        self._tree = tree
        self._court = court
        self._judges = judges
        self._unchanged: dict[tuple[str, ...], Run] = {}

    def judge(self, file: str, mutant: Mutant) -> Verdict:
        """All its judges."""
        tests = self._judges.of(file)
        verdict = Verdict(file, mutant.function, mutant.operator, mutant.index, mutant.line, SURVIVED, judges=tests)
        return self._run(verdict, mutant, tests)

    def judge_again(self, earlier: Verdict) -> Verdict:
        """The test that noticed it first, and all its judges only if this one is gone or passes now."""
        key = (earlier.function, earlier.operator, earlier.index)
        found = mutants_of((self._tree / earlier.file).read_bytes()) if (self._tree / earlier.file).exists() else []
        mutant = next((one for one in found if (one.function, one.operator, one.index) == key), None)
        if mutant is None:
            return replace(earlier, outcome=GONE, killer="")
        if earlier.killer and (self._tree / earlier.killer.partition("::")[0]).exists():
            verdict = self._run(replace(earlier, outcome=SURVIVED), mutant, (earlier.killer,))
            if verdict.noticed:
                return verdict
        # Its line stays that of the record, which is its name there.
        return replace(self.judge(earlier.file, mutant), line=earlier.line)

    def _run(self, verdict: Verdict, mutant: Mutant, tests: tuple[str, ...]) -> Verdict:
        source = mutant.apply((self._tree / verdict.file).read_bytes())
        while left := tuple(test for test in tests if not self._is_broken(test)):
            run = self._court.judge(verdict.file, source, left, without=self._broken_tests())
            if run.ended in {"passed", "none"}:
                break
            # Without a name, pytest itself ended: no test could begin.
            killers = (run.killer,) if run.killer else left
            if self._ran(killers).passed(killers):
                outcome = TIMEOUT if run.ended == "timeout" else KILLED
                return replace(verdict, outcome=outcome, killer=killers[0])
            if not run.killer:
                break
        return replace(verdict, outcome=SURVIVED, killer="")

    def _is_broken(self, test: str) -> bool:
        run = self._unchanged.get((test,))
        return run is not None and not run.passed((test,))

    def _broken_tests(self) -> list[str]:
        return [tests[0] for tests in self._unchanged if len(tests) == 1 and self._is_broken(tests[0])]

    def _ran(self, tests: tuple[str, ...]) -> Run:
        """The run of these files or tests with the unchanged sources."""
        if tests not in self._unchanged:
            run = self._unchanged[tests] = self._court.run(tests)
            is_named = any("::" in test for test in tests)
            if run.ended == "failed" and not run.killer and not is_named:
                # Nothing would notice a mutant, and all would seem to survive. A single test may have another name now.
                raise NoCourt(f"pytest does not begin with the unchanged sources: {' '.join(tests)}")
        return self._unchanged[tests]
