"""The Services whose status is changed: those with the annotation, and those of a named loadBalancerClass.

The law: the annotation decides if there is one, so that a Service of a named class can be left out. The same sentence
is a CEL expression in policy.py. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dnsproxy.doctor.judge import ip_mode_policy

ANNOTATION: Final = ip_mode_policy.ANNOTATION
PROXY: Final = ip_mode_policy.PROXY
"""The value that selects a Service, and the ipMode that it gets; any other value leaves the Service alone."""

# A qualified name, as the API server demands of spec.loadBalancerClass: k8s.io/apimachinery, content.IsLabelKey.
_WORD: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_LONGEST_DOMAIN: Final = 253


@dataclass(frozen=True, slots=True)
class Selection:
    """Which Services beside those with the annotation."""

    classes: tuple[str, ...] = ()
    """Values of spec.loadBalancerClass."""

    def selects(self, annotations: Mapping[str, str], load_balancer_class: str) -> bool:
        """Whether a Service is one of them; its class is empty if it has none."""
        by_class = bool(load_balancer_class) and load_balancer_class in self.classes
        return annotations.get(ANNOTATION, PROXY if by_class else "") == PROXY


def parse_load_balancer_class(text: str) -> str:
    """A value that spec.loadBalancerClass can have: `DOMAIN/NAME` or `NAME`, ASCII alone. Raises ValueError."""
    domain, slash, name = text.rpartition("/")
    has_domain = len(domain) <= _LONGEST_DOMAIN and _DOMAIN.fullmatch(domain)
    if not _WORD.fullmatch(name) or (slash and not has_domain):
        raise ValueError(f"{text!a} is not a loadBalancerClass, such as example.org/lb or service.k8s.aws/nlb")
    return text
