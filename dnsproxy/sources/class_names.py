"""The names of ingress classes: the annotation with one, and how long one may be.

The law: pure; the same for an Ingress and for every kind that has its classes.
"""

from __future__ import annotations

from typing import Final

from sidecar.values.text import cut, quoted

CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
"""The predecessor of spec.ingressClassName; still read by every controller."""

_LONGEST: Final = 253
"""Characters in the name of an IngressClass. The API server checks the field, and not the annotation, which may have a
quarter of a megabyte; each claim would keep it."""


def kept_class(name: str | None) -> str | None:
    """What is kept of a class: a name that is too long for one is cut, and is still refused."""
    return None if name is None else cut(name, _LONGEST)


def refuse_class(name: str | None) -> str | None:
    """Why an object with this class claims nothing; None if the class may be one."""
    if name is None or len(name) <= _LONGEST:
        return None
    return f"its class {quoted(name)} is longer than {_LONGEST} characters"
