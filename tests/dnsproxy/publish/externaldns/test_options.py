"""The flags for external-dns: values that an API server would refuse are refused first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dnsproxy.publish.externaldns.options import (
    parse_annotation,
    parse_annotation_prefix,
    parse_instance,
    parse_label,
    parse_namespace,
    refuse_reserved,
)


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        pytest.param(parse_instance, "main", "main", id="an instance"),
        pytest.param(parse_instance, "A_b.c-9", "A_b.c-9", id="an instance of all characters"),
        pytest.param(parse_instance, "x" * 63, "x" * 63, id="a long instance"),
        pytest.param(parse_namespace, "kube-system", "kube-system", id="a namespace"),
        pytest.param(parse_annotation_prefix, "in.example.org/", "in.example.org/", id="a prefix"),
        pytest.param(parse_label, "team=edge", ("team", "edge"), id="a label"),
        pytest.param(parse_label, "example.org/team=", ("example.org/team", ""), id="an empty label"),
        pytest.param(parse_annotation, "example.org/a=b=c d", ("example.org/a", "b=c d"), id="an annotation"),
    ],
)
def test_good_values_are_taken(parse: Callable[[str], Any], text: str, expected: Any) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((parse_instance, text) for text in ("", " ", "-a", "a-", "a b", "x" * 64, "ä", "a\n")),
        *((parse_namespace, text) for text in ("", "Edge", "a.b", "-a", "x" * 64, "a/b", "a\n")),
        *((parse_annotation_prefix, text) for text in ("", "/", "example.org", "Example.org/", "a_b/", "a/b/", "-a/")),
        (parse_annotation_prefix, "a." * 127 + "/"),
        *((parse_label, text) for text in ("", "team", "=x", "/x=y", "a/b/c=x", "a b=x", "-a=x", "A/b=x", "a_b/c=x")),
        *((parse_label, text) for text in ("a=" + "x" * 64, "a=b c", "a=-b", "a=b/c", "x" * 64 + "=a", "a\n=b")),
        *((parse_annotation, text) for text in ("", "x", "=x", "/x=y", "a/=x", "é=x")),
    ],
)
def test_bad_values_are_refused(parse: Callable[[str], Any], text: str) -> None:
    with pytest.raises(ValueError, match=r"is no |is not "):
        parse(text)


@pytest.mark.parametrize(
    ("labels", "annotations", "said"),
    [
        pytest.param(["app.kubernetes.io/managed-by"], [], "--label app.kubernetes.io/managed-by", id="managed-by"),
        pytest.param(["switchback.dev/instance"], [], "--label switchback.dev/instance", id="the instance"),
        pytest.param([], ["in.example.org/target"], "--annotation in.example.org/target", id="the target"),
        pytest.param([], ["in.example.org/hostname"], "--annotation in.example.org/hostname", id="the hostname"),
        pytest.param([], ["switchback.dev/hostname"], "--annotation switchback.dev/hostname", id="a mark of ours"),
    ],
)
def test_what_is_ours_to_say_is_refused(labels: list[str], annotations: list[str], said: str) -> None:
    (fault,) = refuse_reserved(labels, annotations, prefixes=["out.example.org/", "in.example.org/"])
    assert fault.startswith(said)


def test_what_only_looks_like_ours_is_taken() -> None:
    annotations = ["target", "in.example.org/owner"]
    assert refuse_reserved(["managed-by", "team"], annotations, prefixes=["in.example.org/"]) == []
