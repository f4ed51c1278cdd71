"""The state: the objects of the Gateway API that are known, and which of them depend on which.

The law: an index holds an entry exactly as long as the object that made it, so that after any history it is what the
living objects alone would make.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from dnsproxy.sources.gateway.facts import Facts, parents_of
from dnsproxy.sources.gateway.kinds import Ref

K = TypeVar("K")


class State:
    """Facts by object, labels by namespace."""

    def __init__(self) -> None:
        self._facts: dict[Ref, Facts] = {}
        self._children: dict[Ref, dict[Ref, None]] = {}
        self._residents: dict[str, dict[Ref, None]] = {}
        self._labels: dict[str, Mapping[str, str]] = {}

    def get(self, ref: Ref) -> Facts | None:
        """What is known of an object; None: there is none."""
        return self._facts.get(ref)

    def labels_of(self, namespace: str) -> Mapping[str, str] | None:
        """The labels of a namespace; None where it was never seen."""
        return self._labels.get(namespace)

    def put(self, ref: Ref, facts: Facts | None) -> bool:
        """Take an object in, or out (None). Whether that is any different from before."""
        old = self._facts.get(ref)
        if old == facts:
            return False
        if old is not None:
            self._unlink(ref, old)
        if facts is not None:
            self._link(ref, facts)
        return True

    def put_labels(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Take a namespace's labels in, or out (None). Whether they are any different from before."""
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
        """Whether nothing is left of any object."""
        return not (self._facts or self._children or self._residents or self._labels)

    def _link(self, ref: Ref, facts: Facts) -> None:
        self._facts[ref] = facts
        for parent in parents_of(facts):
            self._children.setdefault(parent, {})[ref] = None
            self._residents.setdefault(ref.namespace, {})[ref] = None

    def _unlink(self, ref: Ref, facts: Facts) -> None:
        del self._facts[ref]
        for parent in parents_of(facts):
            _take_out(self._children, parent, ref)
            _take_out(self._residents, ref.namespace, ref)


def _take_out(index: dict[K, dict[Ref, None]], key: K, ref: Ref) -> None:
    """Two parentRefs may name one parent, so that the entry may be out already."""
    refs = index.get(key)
    if refs is not None:
        refs.pop(ref, None)
        if not refs:
            del index[key]
