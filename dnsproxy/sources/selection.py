"""The selection: which objects of a cluster count, of whatever kind, by their namespace, labels and annotations.

The law: pure. It applies to objects that name hosts; the Services of targets, IngressClasses and Namespaces are read as
ever. What is not selected is treated as absent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from sidecar.kubernetes.names import LABEL
from sidecar.kubernetes.objects import Collection, Resource
from sidecar.kubernetes.selector import EVERYTHING, Selector, format_selector
from sidecar.values.text import quoted

T = TypeVar("T", bound=Resource)

_NAMESPACE: Final = re.compile(LABEL)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects count; by default all."""

    namespaces: tuple[str, ...] = ()
    """`--namespace`: only these are read, each once; empty: all, by one request for all."""
    labels: Selector = EVERYTHING
    """`--label-selector`: compared by the API server."""
    annotations: Selector = EVERYTHING
    """`--annotation-filter`."""

    def of(self, collection: Collection[T]) -> Collection[T]:
        """The objects of a collection that count, in all namespaces."""
        if not self.labels.requirements and not self.annotations.requirements:
            return collection
        return replace(
            collection,
            label_selector=",".join(filter(None, (collection.label_selector, format_selector(self.labels)))),
            annotation_selector=self.annotations if self.annotations.requirements else None,
        )

    def snapshot_settings(self) -> dict[str, str]:
        """Settings for a snapshot: those that were chosen, so that a snapshot from before there was a choice counts."""
        chosen = {
            "namespaces": ",".join(sorted(self.namespaces)),
            "label selector": format_selector(self.labels),
            "annotation filter": format_selector(self.annotations),
        }
        return {name: text for name, text in chosen.items() if text}


ALL: Final = Selection()
"""Every object counts."""


def parse_namespace(text: str) -> str:
    """The name of a namespace. Raises ValueError."""
    name = text.strip()
    if not _NAMESPACE.fullmatch(name):
        raise ValueError(f"{quoted(text)} is not the name of a namespace: up to 63 of a-z, 0-9 and -, such as shop")
    return name
