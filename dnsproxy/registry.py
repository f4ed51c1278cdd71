"""The registry: every claim of every source, by object and by hostname.

The law: an object's claims replace its earlier ones whole. Only the hostnames that a change touches are judged again,
and the result is that of judging everything afresh, whatever the order of the changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dnsproxy.claims import Claim, Reach
from dnsproxy.guards import Guards
from dnsproxy.plan import Lost, Targets, Verdict, judge
from dnsproxy.table import Host

Row = tuple[str, Reach]
"""A hostname in normal form, and how far it reaches."""


class Registry:
    """Holds the claims and says what they come to."""

    def __init__(self, *, targets: Targets, guards: Guards) -> None:
        self._targets = targets
        self._guards = guards
        self._objects: dict[tuple[str, str], tuple[Claim, ...]] = {}
        self._rows: dict[Row, list[Claim]] = {}
        self._touched: dict[Row, None] = {}

    def replace(self, source: str, key: str, claims: Iterable[Claim]) -> None:
        """Set what one object of one source claims; nothing where it is gone."""
        new = tuple(claims)
        old = self._objects.pop((source, key), ())
        if new == old:
            if new:
                self._objects[source, key] = new
            return
        for claim in old:
            self._remove(claim)
        for claim in new:
            self._rows.setdefault((claim.hostname, claim.reach), []).append(claim)
            self._touched[claim.hostname, claim.reach] = None
        if new:
            self._objects[source, key] = new

    def changes(self) -> Iterator[Host]:
        """What has become of each hostname touched since the last call; without addresses it goes out of the table."""
        while self._touched:
            hostname, reach = self._touched.popitem()[0]
            yield Host(hostname, reach, self.verdict(hostname, reach).addresses)

    def verdict(self, hostname: str, reach: Reach) -> Verdict:
        """Who has a hostname and who lost it."""
        return judge(self._rows.get((hostname, reach), ()), targets=self._targets, guards=self._guards)

    def lost(self) -> list[Lost]:
        """Every claim that is not answered."""
        return [lost for hostname, reach in self._rows for lost in self.verdict(hostname, reach).lost]

    def _remove(self, claim: Claim) -> None:
        row = claim.hostname, claim.reach
        claims = self._rows[row]
        claims.remove(claim)
        if not claims:
            del self._rows[row]
        self._touched[row] = None
