"""Route Services: Services in our own namespace whose annotations say what is relayed, and for whom.

The law: pure. A route Service is the only state that `dnsproxy serve`, the relay and their operator share.
"""

from __future__ import annotations

import re
from typing import Final

FOR: Final = "switchback.dev/for"
"""Whose names are answered with the Service's addresses: subjects, separated by commas."""
RELAY_TO: Final = "switchback.dev/relay-to"
"""The backend, `NAMESPACE/NAME`."""
PROXY_PROTOCOL: Final = "switchback.dev/proxy-protocol"
"""The header that the relay adds: v1, v2 or none."""

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = rf"{_LABEL}(?:\.{_LABEL})*"
_SUBJECT: Final = re.compile(rf"ingressclass/(?P<ingress>{_NAME})|gateway/{_LABEL}/(?P<gateway>{_NAME})")
_LONGEST: Final = 253


def ingress_class_subject(name: str) -> str:
    """The subject of an IngressClass."""
    return f"ingressclass/{name}"


def gateway_subject(namespace: str, name: str) -> str:
    """The subject of a Gateway."""
    return f"gateway/{namespace}/{name}"


def parse_subjects(text: str) -> tuple[str, ...]:
    """The value of FOR: `ingressclass/NAME` or `gateway/NAMESPACE/NAME`, separated by commas. Raises ValueError."""
    subjects = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for one in subjects:
        match = _SUBJECT.fullmatch(one)
        if match is None or len(match["ingress"] or match["gateway"]) > _LONGEST:
            raise ValueError(f"{one!a} is not ingressclass/NAME or gateway/NAMESPACE/NAME")
    return subjects
