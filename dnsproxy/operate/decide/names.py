"""The name of the relay Service of a subject.

The law: one subject, one name, for ever. A Gateway's name, and one that is no label, carry a hash.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from dnsproxy.operate.decide.facts import Subject

LONGEST: Final = 63
"""A Service's name is a DNS label (RFC 1035)."""
_LABEL: Final = re.compile(r"relay-[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def service_name(subject: Subject) -> str:
    """`relay-CLASS`, or with a hash where that is no label, too long, or might be another subject's."""
    plain = f"relay-{subject.name}"
    if not subject.namespace and len(plain) <= LONGEST and _LABEL.fullmatch(plain):
        return plain
    digest = hashlib.sha256(str(subject).encode()).hexdigest()[:10]
    readable = re.sub(r"[^a-z0-9]+", "-", "-".join(filter(None, (subject.namespace, subject.name)))).strip("-")
    return f"relay-{readable[: LONGEST - 17]}-{digest}".replace("--", "-")
