"""Differences: the names that a controller serves and we do not claim, or the other way round.

The law: pure. A claimed name that is not served is explained if an explanation holds for every claim to it; a served
name that is not claimed needs an explanation for its set. The guide has the sentence of each explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import yaml

from dnsproxy.hostnames.claims import Claim
from tests.differential.sets import SEED, USUAL_SEED, Manifest, ObjectSet
from tests.differential.universe import probes


@dataclass(frozen=True)
class Explanation:
    """A known reason for which a claimed name is not served."""

    sentence: str
    holds: Callable[[ObjectSet, Claim], bool]


@dataclass(frozen=True)
class Omission:
    """A known reason for which a served name is not claimed."""

    sentence: str
    holds: Callable[[ObjectSet, str], bool]


@dataclass(frozen=True)
class Reasons:
    """All that is known of one controller."""

    explanations: tuple[Explanation, ...] = ()
    omissions: tuple[Omission, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """Each once."""
        explained = (one.sentence for one in self.explanations)
        return list(dict.fromkeys((*explained, *(one.sentence for one in self.omissions))))


@dataclass(frozen=True)
class Difference:
    """A name that one side has."""

    objects: ObjectSet
    name: str
    claims: tuple[Claim, ...]
    """Our claims to it, which the controller does not serve; empty: it is served and not claimed."""

    def explained_by(self, reasons: Reasons) -> frozenset[str]:
        """The sentences that explain it; empty if any claim remains unexplained."""
        if not self.claims:
            return frozenset(one.sentence for one in reasons.omissions if one.holds(self.objects, self.name))
        found = [
            frozenset(one.sentence for one in reasons.explanations if one.holds(self.objects, claim))
            for claim in self.claims
        ]
        return frozenset().union(*found) if all(found) else frozenset()

    def __str__(self) -> str:
        by = ", ".join(f"{one.origin} ({one.hostname})" for one in self.claims)
        what = f"is claimed by {by} and not served" if self.claims else "is served and not claimed"
        return f"{self.name} {what}\n{yaml.safe_dump_all(self.objects.subjects, sort_keys=False)}"


def find_differences(
    sets: Iterable[ObjectSet],
    *,
    claims: Callable[[ObjectSet, str], Sequence[Claim]],
    serves: Callable[[ObjectSet, str], bool],
) -> Iterator[Difference]:
    """The names that only one side has: `claims` gives ours to a name, `serves` asks the controller."""
    for one in sets:
        for name in probes(one.zone):
            ours = tuple(claims(one, name))
            if bool(ours) != serves(one, name):
                yield Difference(one, name, ours)


def unexplained(differences: Iterable[Difference], reasons: Reasons) -> list[Difference]:
    """The differences without an explanation, those of the smallest sets first."""
    left = (one for one in differences if not one.explained_by(reasons))
    return sorted(left, key=lambda one: len(str(one)))


def expect_explained(differences: Iterable[Difference], reasons: Reasons, *, all_sets: bool = True) -> None:
    """Fail with the smallest set with an unexplained difference; also if a reason explains none of the usual sets.

    `all_sets`: whether the differences are those of all sets.
    """
    found = list(differences)
    left = unexplained(found, reasons)
    assert not left, f"seed {SEED}, {len(left)} differences; in the smallest set:\n{left[0]}"
    needed = {sentence for one in found for sentence in one.explained_by(reasons)}
    idle = [sentence for sentence in reasons.sentences if sentence not in needed]
    assert SEED != USUAL_SEED or not all_sets or not idle, f"these explain nothing: {idle}"


def find_object(objects: ObjectSet, kind: str, namespace: str, name: str) -> Manifest | None:
    """An object of a set."""
    wanted = kind, namespace, name
    found = (
        one
        for one in objects.objects
        if (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) == wanted
    )
    return next(found, None)


def of_kind(objects: ObjectSet, kind: str) -> list[Manifest]:
    """The objects of a kind in a set."""
    return [one for one in objects.objects if one["kind"] == kind]
