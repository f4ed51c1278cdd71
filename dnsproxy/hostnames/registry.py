"""The registry: what the claims of all sources come to, hostname by hostname.

The law: only the hostnames that a change touches are judged again, and the result is that of judging everything afresh,
whatever the order of the changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from dnsproxy.answers.table import Host
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Rejection
from dnsproxy.hostnames.guards import Guards, refusal
from dnsproxy.hostnames.ownership import Finding, Standing, standing_of
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import Doubted, Lost, Verdict, judge
from dnsproxy.hostnames.wildcards import reaches


class Registry:
    """A claim store, and the verdicts on what it holds."""

    def __init__(self, *, targets: Targets, guards: Guards, enforce_ownership: bool = False) -> None:
        self.store = ClaimStore()
        self._targets = targets
        self._guards = guards
        self._touched: list[Iterable[str]] = []
        self._lost: dict[tuple[str, Reach], tuple[Lost, ...]] = {}
        self._doubted: dict[tuple[str, Reach], Doubted] = {}
        self._waiting: dict[tuple[str, Reach], None] = {}
        self._enforce_ownership = enforce_ownership
        self._findings: dict[str, Finding] = {}
        self._judged = 0

    @property
    def denied(self) -> tuple[str, ...]:
        """Hostnames that are kept out by name, from wildcards too."""
        return self._guards.deny

    @property
    def targets(self) -> Targets:
        """Where names without addresses of their own point."""
        return self._targets

    def set_services(self, addresses: Mapping[str, tuple[str, ...]], *, touching: Iterable[str] | None = None) -> None:
        """The addresses of the Services that targets name, by `NAMESPACE/NAME`.

        The hostnames that this touches are judged again; None: all.
        """
        self._targets = dataclasses.replace(self._targets, services=addresses)
        self.touch(self.store.names() if touching is None else touching)

    @property
    def findings(self) -> Mapping[str, Finding]:
        """What public DNS said of hostnames, where that speaks against a claim."""
        return self._findings

    def set_finding(self, hostname: str, finding: Finding | None) -> bool:
        """What public DNS says of a hostname; None where that speaks against nobody. Whether it is any news."""
        if self._findings.get(hostname) == finding:
            return False
        if finding is None:
            del self._findings[hostname]
        else:
            self._findings[hostname] = finding
        self.touch([hostname])
        return True

    def standing_of(self, claim: Claim, finding: Finding) -> Standing:
        """What a finding about its hostname says of a claim."""
        return standing_of(claim, answers=self._targets.addresses_for(claim), finding=finding)

    def refusal(self, hostname: str) -> str | None:
        """Why nobody's claim to this hostname would be taken, or None where one may be."""
        return refusal(hostname, self._guards)

    def replace(self, source: str, key: str, claims: Sequence[Claim], rejections: Sequence[Rejection] = ()) -> None:
        """Set what one object of one source claims; nothing where it is gone."""
        self.touch(self.store.replace(source, key, claims, rejections))

    def touch(self, hostnames: Iterable[str]) -> None:
        """The claims to these hostnames have changed in the store; however many they are, this costs the same."""
        self._touched.append(hostnames)

    def changes(self) -> Iterator[Host]:
        """What has become of each hostname touched since the last call; without addresses it goes out of the table."""
        while self._touched:
            for hostname in self._touched.pop():
                for reach in reaches(hostname):
                    verdict = self.verdict(hostname, reach)
                    self._remember((hostname, reach), verdict)
                    yield Host(hostname, reach, verdict.addresses)

    def verdict(self, hostname: str, reach: Reach) -> Verdict:
        """Who has a hostname and who lost it."""
        claims = [claim for claim in self.store.claims_for(hostname) if claim.reach is reach]
        return judge(
            claims,
            targets=self._targets,
            guards=self._guards,
            finding=self._findings.get(hostname),
            enforce=self._enforce_ownership,
        )

    def lost(self) -> list[Lost]:
        """Every claim that is not answered, as of the last changes(): judging all for a page would hold up DNS."""
        return list(chain.from_iterable(self._lost.values()))

    def doubted(self) -> list[Doubted]:
        """The claims that are answered though their public record leads elsewhere, as of the last changes()."""
        return list(self._doubted.values())

    def lost_rows(self) -> list[tuple[str, Reach]]:
        """The rows that somebody lost, to walk through with lost_at while they change."""
        return list(self._lost)

    def lost_rows_now(self) -> Iterator[tuple[str, Reach]]:
        """The same without a copy: a change meanwhile is a RuntimeError."""
        return iter(self._lost)

    def lost_at(self, hostname: str, reach: Reach) -> tuple[Lost, ...]:
        """Who lost a row, as of the last changes()."""
        return self._lost.get((hostname, reach), ())

    def doubted_rows(self) -> list[tuple[str, Reach]]:
        """As lost_rows, of those that are in doubt."""
        return list(self._doubted)

    def doubted_rows_now(self) -> Iterator[tuple[str, Reach]]:
        """As lost_rows_now."""
        return iter(self._doubted)

    def doubt_at(self, hostname: str, reach: Reach) -> Doubted | None:
        """The doubt about a row, as of the last changes()."""
        return self._doubted.get((hostname, reach))

    @property
    def judged(self) -> int:
        """Grows with every row that is judged again: as long as it stays, nobody else has lost or is in doubt."""
        return self._judged

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows somebody lost, and how many are in doubt."""
        return len(self._lost), len(self._doubted)

    @property
    def waiting(self) -> int:
        """How many hostnames are left out because their target has no address, as of the last changes()."""
        return len(self._waiting)

    def _remember(self, row: tuple[str, Reach], verdict: Verdict) -> None:
        self._judged += 1
        if verdict.lost:
            self._lost[row] = verdict.lost
        else:
            self._lost.pop(row, None)
        if verdict.waits:
            self._waiting[row] = None
        else:
            self._waiting.pop(row, None)
        if verdict.winner is not None and verdict.doubt:
            self._doubted[row] = Doubted(verdict.winner, verdict.doubt)
        else:
            self._doubted.pop(row, None)
