"""Public suffixes: the domains under which names of many owners are, such as `co.uk` and `github.io`.

The law: pure; the list is that of publicsuffix.org in the package publicsuffixlist, nothing is fetched. It is read
once, when it is first needed: 25 ms and 1.2 MiB, so a server reads it before its first query (load_public_suffixes).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of the list, by what they say about a name; all names in normal form.

    Each judgement of a name asks: at most three look-ups answer, where the library joins and looks up all labels.
    """

    suffixes: frozenset[str]
    """Names that are public suffixes; also what a wildcard rule is below, as in the tests of publicsuffix.org."""
    parents: frozenset[str]
    """Names of which each child is a public suffix: `ck`, of the rule `*.ck`."""
    exceptions: frozenset[str]
    """Children of these that are no public suffixes: `www.ck`, of the rule `!www.ck`."""

    def include(self, name: str, parent: str) -> bool:
        """Whether a name is a public suffix; `parent` has one label less, none for a top-level domain."""
        return name in self.suffixes or not parent or (parent in self.parents and name not in self.exceptions)


def load_public_suffixes() -> None:
    """Read the list now."""
    _rules()


def is_public_suffix(name: str) -> bool:
    """Whether a name in normal form, without `*.`, is a public suffix; an unknown top-level domain is one."""
    return _rules().include(name, name.partition(".")[2])


def registrable_domain(name: str) -> str | None:
    """One label below the public suffix of a name in normal form, without `*.`; None for a suffix itself."""
    rules = _rules()
    below = None
    parent = name.partition(".")[2]
    while not rules.include(name, parent):
        below, name, parent = name, parent, parent.partition(".")[2]
    return below


@lru_cache(maxsize=1)
def _rules() -> _Rules:
    from publicsuffixlist import PSLFILE  # noqa: PLC0415  # commands that never ask must not load it

    with Path(PSLFILE).open(encoding="utf-8") as lines:
        return _parse(lines)


def _parse(lines: Iterable[str]) -> _Rules:
    """The rules of a list in the format of publicsuffix.org: a rule is the first word of its line."""
    rules = [line.split(maxsplit=1)[0] for line in lines if line.strip() and not line.startswith("//")]
    names = [rule if rule.isascii() else rule.encode("idna").decode() for rule in rules]
    parents = {name[2:] for name in names if name.startswith("*.")}
    return _Rules(
        suffixes=frozenset(name for name in names if name[0] not in "*!") | parents,
        parents=frozenset(parents),
        exceptions=frozenset(name[1:] for name in names if name.startswith("!")),
    )
