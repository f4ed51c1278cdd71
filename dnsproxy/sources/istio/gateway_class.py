"""The class of an Istio Gateway: the labels of its selector, which choose the pods of a gateway.

The law: pure; the same labels are the same class, in whatever order they are written.
"""

from __future__ import annotations

from collections.abc import Mapping

from sidecar.values.text import quoted


def parse_class(text: str) -> str:
    """`KEY=VALUE[,KEY=VALUE]`, as format_class writes it. Raises ValueError."""
    labels: dict[str, str] = {}
    for label in text.split(","):
        key, equals, value = label.strip().partition("=")
        if not key or not equals or key in labels:
            raise ValueError(f"{quoted(text)} is no selector of an Istio Gateway, for example istio=ingressgateway")
        labels[key] = value
    return format_class(labels)


def format_class(selector: Mapping[str, str]) -> str:
    """The class of a Gateway with this selector, as users write it in flags."""
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
