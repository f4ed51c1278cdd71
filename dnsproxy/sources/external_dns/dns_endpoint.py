"""DNSEndpoint: the addresses and aliases of hostnames that one externaldns.k8s.io/v1alpha1 DNSEndpoint lists.

The law: pure; an invalid endpoint or target affects no other. Addresses of one name in several endpoints add up; beside
them the name has no alias (RFC 1034 section 3.6.2). Records of other types cannot be answered here.
https://kubernetes-sigs.github.io/external-dns/latest/docs/sources/crd/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from typing import Final

import msgspec

from dnsproxy.dns.addresses import parse_address
from dnsproxy.dns.names import BadName, ObjectNames
from dnsproxy.hostnames.claims import Origin
from dnsproxy.hostnames.name_limits import too_many
from dnsproxy.sources.annotations import AnnotatedMetadata, Annotations, origin_of, read_annotations
from dnsproxy.sources.external_dns.annotations import PUBLISHED, PublishedFields, is_published
from sidecar.values.text import quoted

SOURCE: Final = "DNSEndpoint"
_MOST_ADDRESSES: Final = 64
"""Of one name: A and AAAA records of some 1.5 KB."""
_MOST_READ: Final = 10_000
"""Endpoints and targets of one object, if it may not have more names: a megabyte may have 150,000 bad targets, which
would take a second to read."""
_MOST_FAULTS: Final = 100
"""As many of one object are kept."""

_VERSIONS: Final = {"A": 4, "AAAA": 6}
_CNAME: Final = "CNAME"


class _Metadata(AnnotatedMetadata, frozen=True, gc=False, rename="camel"):
    labels: PublishedFields | None = None


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """The records of one name and type; TTL and what is for providers is not read."""

    dns_name: str | None = msgspec.field(default=None, name="dnsName")
    record_type: str | None = msgspec.field(default=None, name="recordType")
    targets: tuple[str | None, ...] | None = None


class Spec(msgspec.Struct, frozen=True, gc=False):
    """DNSEndpointSpec."""

    endpoints: tuple[Endpoint | None, ...] | None = None


class DnsEndpoint(msgspec.Struct, frozen=True, gc=False):
    """The fields of a DNSEndpoint that decide its claims."""

    metadata: _Metadata
    spec: Spec | None = None


class Records(msgspec.Struct, frozen=True, gc=False):
    """What one DNSEndpoint says."""

    origin: Origin
    annotations: Annotations
    addresses: dict[str, tuple[str, ...]]
    """By hostname in normal form; in canonical form, each once."""
    aliases: dict[str, str]
    """The other names that names stand for, by hostname."""
    faults: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Why records are deliberately left out."""

    @property
    def names(self) -> tuple[str, ...]:
        """All hostnames."""
        return (*self.addresses, *self.aliases)


def read_records(one: DnsEndpoint, *, most: int | None) -> Records:
    """The records of the first `most` hostnames of an object."""
    reader = _Reader(most)
    reader.read_all((one.spec.endpoints if one.spec is not None else None) or ())
    origin, annotations = origin_of(SOURCE, one.metadata), read_annotations(one.metadata)
    if is_published(one.metadata.labels):
        ignored = (f"Switchback itself has published it ({PUBLISHED})",)
        return Records(origin, annotations, {}, {}, ignored=ignored)
    return reader.records(origin, annotations)


class _Reader:
    """Collects the records of an object, endpoint by endpoint."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._most_read = max(_MOST_READ, most or 0)
        self._targets = 0
        self._names = ObjectNames()
        self._addresses: dict[str, dict[str, None]] = {}
        self._aliases: dict[str, str] = {}
        self._faults: dict[str, None] = {}
        self._ignored: dict[str, None] = {}

    def read_all(self, endpoints: Sequence[Endpoint | None]) -> None:
        """Take in the endpoints of an object."""
        for endpoint in endpoints[: self._most_read]:
            if endpoint is not None and not self._read(endpoint):
                return
        if len(endpoints) > self._most_read:
            self._note_cut("endpoints")

    def _read(self, endpoint: Endpoint) -> bool:
        """Take in an endpoint. Returns whether targets of further ones may be read."""
        rtype = endpoint.record_type or ""
        if rtype != _CNAME and rtype not in _VERSIONS:
            shown = f"{quoted(endpoint.dns_name or '')}: only A, AAAA and CNAME are answered, not {quoted(rtype)}"
            self._note(self._ignored, shown)
            return True
        try:
            name = self._names.parse(endpoint.dns_name or "")
        except BadName as error:
            self._note(self._faults, f"dnsName: {error}")
            return True
        if self._is_full(name):
            self._note(self._faults, too_many(self._most or 0))
            return True
        given = endpoint.targets or ()
        left = self._most_read - self._targets
        self._targets += len(given)
        targets = dict.fromkeys(target.strip() for target in given[:left] if target)
        if rtype == _CNAME:
            self._read_alias(name, targets)
        else:
            self._read_addresses(name, rtype, targets)
        if len(given) > left:
            self._note_cut("targets")
            return False
        return True

    def records(self, origin: Origin, annotations: Annotations) -> Records:
        """Everything collected."""
        for name in self._aliases.keys() & self._addresses.keys():
            del self._aliases[name]
            self._note(self._faults, f"{name}: it has addresses, and no alias beside them (RFC 1034 section 3.6.2)")
        addresses = {name: tuple(found) for name, found in self._addresses.items()}
        faults = (*annotations.faults, *sorted(self._faults))
        return Records(origin, annotations, addresses, self._aliases, faults, tuple(sorted(self._ignored)))

    def _is_full(self, name: str) -> bool:
        names = len(self._addresses) + len(self._aliases)
        known = name in self._addresses or name in self._aliases
        return self._most is not None and names >= self._most and not known

    def _read_alias(self, name: str, targets: Iterable[str]) -> None:
        for alias in self._hostnames(name, targets):
            if self._aliases.setdefault(name, alias) != alias:
                self._note(self._faults, f"{name}: it has several aliases, of which only the first counts")

    def _hostnames(self, name: str, targets: Iterable[str]) -> Iterator[str]:
        for target in targets:
            try:
                alias = self._names.parse(target)
            except BadName as error:
                self._note(self._faults, f"{name}: its CNAME target {error}")
                continue
            if alias.startswith("*."):
                self._note(self._faults, f"{name}: its CNAME target {quoted(target)} is a wildcard")
            else:
                yield alias

    def _read_addresses(self, name: str, rtype: str, targets: Iterable[str]) -> None:
        for target in targets:
            try:
                address = parse_address(target)
            except ValueError as error:
                self._note(self._faults, f"{name}: its {rtype} target {error}")
                continue
            if ip_address(address).version != _VERSIONS[rtype]:
                self._note(self._faults, f"{name}: its {rtype} target {address} is of the other family")
                continue
            found = self._addresses.setdefault(name, {})
            if len(found) == _MOST_ADDRESSES and address not in found:
                self._note(
                    self._faults, f"{name}: it has more than {_MOST_ADDRESSES} addresses: the others are left out"
                )
                return
            found[address] = None

    def _note_cut(self, what: str) -> None:
        """Also beside so many other faults."""
        self._faults[f"it has more than {self._most_read:,} {what}: the others are left out"] = None

    def _note(self, notes: dict[str, None], text: str) -> None:
        if len(notes) < _MOST_FAULTS:
            notes[text] = None
