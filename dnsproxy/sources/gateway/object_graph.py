"""The graph of the known objects of the Gateway API: which object depends on which.

The law: an index holds an entry exactly as long as the object that caused it, so that after any history it equals the
index of the existing objects alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from dnsproxy.sources.gateway.facts import Facts, parents_of
from dnsproxy.sources.gateway.kinds import Ref

K = TypeVar("K")


class ObjectGraph:
    """Facts by object, labels by namespace."""

    def __init__(self) -> None:
        self._facts: dict[Ref, Facts] = {}
        self._children: dict[Ref, dict[Ref, None]] = {}
        self._residents: dict[str, dict[Ref, None]] = {}
        self._labels: dict[str, Mapping[str, str]] = {}

    def get(self, ref: Ref) -> Facts | None:
        """The facts of an object; None if it does not exist."""
        return self._facts.get(ref)

    def labels_of(self, namespace: str) -> Mapping[str, str] | None:
        """The labels of a namespace; None if they are unknown."""
        return self._labels.get(namespace)

    def put(self, ref: Ref, facts: Facts | None) -> bool:
        """Add or replace an object, or remove it (None). Returns whether anything changed."""
        old = self._facts.get(ref)
        if old == facts:
            return False
        if old is not None:
            self._unlink(ref, old)
        if facts is not None:
            self._link(ref, facts)
        return True

    def put_labels(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Set the labels of a namespace, or remove them (None). Returns whether anything changed."""
        if self._labels.get(namespace) == labels:
            return False
        if labels is None:
            del self._labels[namespace]
        else:
            self._labels[namespace] = labels
        return True

    def children(self, ref: Ref) -> list[Ref]:
        """The objects that name this one as a parent."""
        return list(self._children.get(ref, ()))

    def residents(self, namespace: str) -> list[Ref]:
        """The objects of a namespace that name a parent."""
        return list(self._residents.get(namespace, ()))

    def is_empty(self) -> bool:
        """Whether no trace of any object is left."""
        return not (self._facts or self._children or self._residents or self._labels)

    def _link(self, ref: Ref, facts: Facts) -> None:
        self._facts[ref] = facts
        for parent in parents_of(facts):
            self._children.setdefault(parent, {})[ref] = None
            self._residents.setdefault(ref.namespace, {})[ref] = None

    def _unlink(self, ref: Ref, facts: Facts) -> None:
        del self._facts[ref]
        for parent in parents_of(facts):
            _remove(self._children, parent, ref)
            _remove(self._residents, ref.namespace, ref)


def _remove(index: dict[K, dict[Ref, None]], key: K, ref: Ref) -> None:
    """The entry may be gone already, because two parentRefs may name one parent."""
    refs = index.get(key)
    if refs is not None:
        refs.pop(ref, None)
        if not refs:
            del index[key]
