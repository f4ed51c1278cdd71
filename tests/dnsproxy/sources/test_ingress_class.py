"""Which IngressClass is the default."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from dnsproxy.sources.ingress_class import IngressClass, default_class

MARK = "ingressclass.kubernetes.io/is-default-class"


def parse(name: str, mark: str | None = "true", created: str | None = "2026-01-01T00:00:00Z") -> IngressClass:
    annotations = {MARK: mark} if mark is not None else None
    metadata = {"name": name, "creationTimestamp": created, "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": {"controller": "example.org/x"}}, IngressClass)


@pytest.mark.parametrize("mark", [None, "", "false", "True", "yes", "1"])
def test_only_true_marks_a_default(mark: str | None) -> None:
    """As the API server reads it."""
    assert default_class([parse("a", mark)]) is None


def test_newest_default_wins_and_then_the_first_by_name() -> None:
    """Whatever the order they come in."""
    old, new = parse("a"), parse("c", created="2026-02-01T00:00:00Z")
    same, plain = parse("b", created="2026-02-01T00:00:00Z"), parse("d", None, "2026-03-01T00:00:00Z")
    for order in itertools.permutations([old, new, same, plain]):
        assert default_class(order) == "b"
    assert default_class([old, parse("z", created=None)]) == "a"
    assert default_class([]) is None
