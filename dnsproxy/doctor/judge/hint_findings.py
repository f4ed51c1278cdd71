"""The findings about addresses that no status names, and about wildcards that cover whole domains.

The law: each is good to know and no more: a CDN looks like a router, and a wildcard may be meant. What several pods of
dnsproxy say is one finding for each address or wildcard.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Final

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity
from dnsproxy.hostnames.public_addresses import UnknownAddress, merge_unknown
from dnsproxy.hostnames.wide_wildcards import WideWildcard, merge_wide

_EXACT: Final = Remedy("if not every host of the domain is this controller's, name exact hosts in the object")
_TLS_HOSTS: Final = Remedy(
    "if only a `tls` section has the wildcard, a rule of the Ingress has to serve it too",
    ("dnsproxy serve --tls-hosts rules",),
)


def judge_hints(facts: Facts) -> Iterator[Finding]:
    """A finding for each address and each wildcard."""
    for address in merge_unknown(page.unknown_addresses for page in facts.admin):
        yield _unknown(address)
    for wildcard in merge_wide(page.wide for page in facts.admin):
        yield _wide(wildcard)


def _unknown(one: UnknownAddress) -> Finding:
    steps = (
        Remedy("if it is your router's, name it, so that these hosts are answered", (f"--trust {quote(one.address)}",)),
        Remedy(
            "with the chart, the same as a value",
            ("dns:", f'  publicAddresses: ["{one.address}"]'),
        ),
    )
    evidence = (f"its hosts belong mostly to {one.subject}",) if one.subject else ()
    return Finding(
        "unknown-address", Severity.INFO, one.sentence, f"address {one.address}", evidence, steps, one.examples
    )


def _wide(one: WideWildcard) -> Finding:
    return Finding("wide-wildcard", Severity.INFO, one.sentence, one.origin, steps=(_EXACT, _TLS_HOSTS))
