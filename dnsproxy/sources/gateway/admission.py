"""Admission: from which namespaces routes may attach to a listener, and ListenerSets to a Gateway.

The law: pure; an invalid or unknown rule admits no namespace, because attaching is a right that the owner of the
listener grants. https://gateway-api.sigs.k8s.io/reference/spec/#fromnamespaces
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dnsproxy.sources.gateway import structs
from dnsproxy.sources.gateway.selectors import Selector, parse_selector
from sidecar.values.text import quoted

_SCOPES: Final = ("All", "Same", "Selector", "None")


class BadScope(ValueError):
    """A `from` that the specification does not have; the message quotes it."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The namespaces that may attach."""

    scope: str
    """The specification's `from`."""
    selector: Selector | None = None

    def refusal(self, namespace: str, *, home: str, labels: Mapping[str, str] | None) -> str | None:
        """Why a namespace is not admitted; None if it is. `home`: the listener's; `labels`: None if unknown."""
        if self.scope == "All" or (self.scope == "Same" and namespace == home):
            return None
        if self.selector is None:
            return f"it does not admit namespace {namespace}"
        if labels is None:
            return f"it admits by labels, and those of namespace {namespace} are not known"
        return None if self.selector.matches(labels) else f"its selector does not match namespace {namespace}"


NO_NAMESPACE: Final = Admission("None")


def parse_admission(namespaces: structs.Namespaces | None, *, default: str) -> Admission:
    """`allowedRoutes.namespaces`, whose default is Same, or `allowedListeners.namespaces`, whose default is None.

    Raises BadScope or BadSelector.
    """
    scope = (namespaces.from_ if namespaces is not None else None) or default
    if scope not in _SCOPES:
        raise BadScope(f"there is no {quoted(scope)} among {', '.join(_SCOPES)}")
    if namespaces is None or scope != "Selector":
        return Admission(scope)
    return Admission(scope, parse_selector(namespaces.selector))
