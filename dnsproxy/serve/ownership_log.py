"""The log of unverified names: each object once, and many names as one warning.

The law: it remembers the names that are unverified now, and no others. Tested in test_ownership_watch.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

import structlog

from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.ownership import ADVICE, Finding, Mode, OwnershipSettings
from dnsproxy.hostnames.registry import Registry
from dnsproxy.serve.ownership_lookups import points_of

_WARNINGS: Final = 20
"""Unverified names that are logged one by one; more are probably one problem and not many."""


class OwnershipLog:
    """Logs what changes."""

    def __init__(self, registry: Registry, *, settings: OwnershipSettings) -> None:
        self._registry = registry
        self._settings = settings
        self._logged: dict[str, frozenset[str]] = {}
        """The objects that were logged as unverified, by hostname."""
        self._log = structlog.get_logger("dnsproxy.ownership")

    @property
    def names(self) -> int:
        """How many hostnames are unverified."""
        return len(self._logged)

    def unverified(self, hostname: str, finding: Finding, doubted: Iterable[Claim]) -> None:
        """The claims `doubted` are unverified."""
        logged = self._logged.get(hostname, frozenset())
        self._logged[hostname] = frozenset(str(claim.origin) for claim in doubted)
        for claim in doubted:
            if str(claim.origin) not in logged:
                self._log.log(
                    logging.WARNING if len(self._logged) <= _WARNINGS else logging.DEBUG,
                    "public record points elsewhere",
                    hostname=hostname,
                    origin=str(claim.origin),
                    public=list(finding.public),
                    expected=list(points_of(self._registry, claim)),
                    left_out=self._settings.mode is Mode.ENFORCE,
                    advice=ADVICE,
                )
        if len(self._logged) == _WARNINGS + 1 and not logged:
            self._log.warning("more names are unverified; the status page lists all", logged=_WARNINGS)

    def settled(self, hostname: str) -> None:
        """No public record contradicts a claim to this hostname."""
        if self._logged.pop(hostname, None) is not None:
            self._log.info("no public record contradicts this name any more", hostname=hostname)
