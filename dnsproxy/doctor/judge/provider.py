"""A provider: how its load balancers are recognised, turn the PROXY header on, and leave the status.

The law: one row of facts with the sources in which they were read; what the sources do not show is named as not
verified, and never offered as a remedy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dnsproxy.doctor.judge.header_annotations import HeaderSwitch

if TYPE_CHECKING:
    from datetime import date

    from dnsproxy.doctor.facts.model import Service


@dataclass(frozen=True, slots=True)
class Source:
    """A file in which facts of a row were read."""

    repository: str
    """On GitHub: `OWNER/NAME`."""
    file: str
    version: str
    """A tag or a commit."""
    read: date

    @property
    def url(self) -> str:
        """The file in this version."""
        return f"https://github.com/{self.repository}/blob/{self.version}/{self.file}"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of a provider's load balancers, with annotations of its own."""

    name: str
    key: str = ""
    """The annotation that chooses it; without key and classes it is the default."""
    values: tuple[str, ...] = ()
    any_case: bool = False
    classes: tuple[str, ...] = ()
    """Beginnings of spec.loadBalancerClass that choose it."""

    def is_of(self, service: Service) -> bool:
        """Whether a Service asks for this kind."""
        if self.classes and service.load_balancer_class.startswith(self.classes):
            return True
        said = service.annotations.get(self.key, "")
        chosen = (said.strip().lower() if self.any_case else said) in self.values
        return chosen or not (self.key or self.classes)


@dataclass(frozen=True, slots=True)
class StatusSetting:
    """An annotation that changes the address of the load balancer in the Service's status."""

    key: str
    value: str = ""
    """Empty: any name that resolves to the load balancer."""
    since: str = ""
    """The oldest controller that reads it; empty: any that is still in use."""
    note: str = ""
    kinds: tuple[str, ...] = ()
    """The kinds of load balancer that have it; empty: all."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider."""

    name: str
    sources: tuple[Source, ...] = ()
    marks: tuple[str, ...] = ()
    """Prefixes of annotation keys."""
    classes: tuple[str, ...] = ()
    """Prefixes of spec.loadBalancerClass."""
    schemes: tuple[str, ...] = ()
    """Of the nodes' spec.providerID."""
    kinds: tuple[Kind, ...] = ()
    """The first that fits counts; empty: its load balancers are all alike."""
    switches: tuple[HeaderSwitch, ...] = ()
    """The first that speaks of a port counts."""
    elsewhere: str = ""
    """What else turns the header on, invisible in the annotations of the Service."""
    never_sends: bool = False
    """Whether its load balancers cannot send the header, except where a switch says so."""
    passes_packets: bool = False
    """Whether packets reach the nodes with the load balancer's own address as destination: then kube-proxy's rule
    for it serves clients from outside too."""
    ip_mode: StatusSetting | None = None
    """Makes the provider set `ipMode: Proxy`."""
    ip_mode_auto: str = ""
    """When its controller sets `ipMode: Proxy` by itself, and since which version."""
    writes_no_ip_mode: bool = False
    """Whether its controller writes no ipMode at all, in the version that was read."""
    hostname: StatusSetting | None = None
    """Puts a hostname in place of the address."""
    note: str = ""
    """A remark, as a sentence without the final stop."""
    unverified: str = ""
    """What the sources do not show."""

    def kind_of(self, service: Service) -> str:
        """The kind of a Service's load balancer; empty if unknown."""
        return next((kind.name for kind in self.kinds if kind.is_of(service)), "")

    def switches_of(self, service: Service) -> tuple[HeaderSwitch, ...]:
        """The switches that a Service's load balancer has."""
        return tuple(switch for switch in self.switches if self._has(switch, service))

    def needs_of(self, key: str, service: Service) -> str:
        """What an annotation about the header needs besides, on a Service's load balancer."""
        return next((switch.needs for switch in self.switches_of(service) if switch.key == key), "")

    def hostname_of(self, service: Service) -> StatusSetting | None:
        """The setting for a hostname, if a Service's load balancer has it."""
        return self.hostname if self.hostname is not None and self._has(self.hostname, service) else None

    def _has(self, setting: HeaderSwitch | StatusSetting, service: Service) -> bool:
        kind = self.kind_of(service)
        return not kind or not setting.kinds or kind in setting.kinds
