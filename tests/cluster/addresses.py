"""Every address of the scene, in one family.

The law: all are for tests (RFC 2544, RFC 3849) or private (RFC 1918, RFC 4193), and visible only in the networks that
the scene makes. Nodes, load balancer and visitors share one link; the pods of each node have a range of their own.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Family = Literal[4, 6]
WORLD: Final = ("contour", "traefik", "skipper", "gateway")
"""The world's controllers; the hosts of each are below NAME.example.org."""
_FIRST_OF_WORLD: Final = 110


@dataclass(frozen=True)
class Addresses:
    """The plan of one family."""

    family: Family
    link: str
    """The start of each address on the link."""
    length: int
    """The prefix length of the link."""
    pods: str
    """The range of all pods."""
    services: str
    dns: str
    """The Service of the cluster's DNS."""
    whole: str
    """A load balancer's address for one pod, behind the link."""
    elsewhere: str
    """The address of `www.example.net`."""
    record: Literal["A", "AAAA"]
    host_length: int
    """The prefix length of one address."""

    def node(self, number: int) -> str:
        """A node's own address; the first node is 1."""
        return f"{self.link}{number + 1}"

    def pods_of(self, number: int) -> str:
        """The range of a node's pods."""
        return self.pods.replace(".0.0/16", f".{number}.0/24").replace("::/56", f":{number}::/64")

    def of(self, controller: str) -> str:
        """The load balancer's address of one of the world's controllers."""
        return f"{self.link}{_FIRST_OF_WORLD + WORLD.index(controller)}"

    def in_url(self, address: str) -> str:
        """An address as an authority has it. RFC 3986, section 3.2.2."""
        return f"[{address}]" if self.family == 6 else address  # the family

    @property
    def router(self) -> str:
        """The next hop to everything else; nobody has this address."""
        return f"{self.link}1"

    @property
    def public(self) -> str:
        """The load balancer's, in the public DNS."""
        return f"{self.link}100"

    @property
    def passed(self) -> str:
        """Of a balancer that passes packets through to a node."""
        return f"{self.link}101"

    @property
    def second(self) -> str:
        """Of the second controller's Service."""
        return f"{self.link}102"

    @property
    def assigned(self) -> str:
        """A range on the link from which a program of the cluster gives addresses to Services."""
        return f"{self.link}200-{self.link}209"

    @property
    def neighbours(self) -> str:
        """Another such range."""
        return f"{self.link}210-{self.link}219"

    @property
    def balancer(self) -> str:
        """The source of the balancer's own connections."""
        return f"{self.link}50"

    @property
    def visitor(self) -> str:
        """The source of people outside, in the balancer's network."""
        return f"{self.link}51"

    @property
    def authority(self) -> str:
        """Of the certificate authority, which looks at hosts from outside."""
        return f"{self.link}61"

    @property
    def outside(self) -> str:
        """A peer outside, for a pod with a whole address."""
        return f"{self.link}60"


IPV4: Final = Addresses(
    family=4,
    link="198.18.7.",
    length=24,
    pods="10.244.0.0/16",
    services="10.96.0.0/16",
    dns="10.96.0.10",
    whole="198.18.9.10",
    elsewhere="192.0.2.80",
    record="A",
    host_length=32,
)
IPV6: Final = Addresses(
    family=6,
    link="2001:db8:7::",
    length=64,
    pods="fd00:10:244::/56",
    services="fd00:10:96::/112",
    dns="fd00:10:96::a",
    whole="2001:db8:9::10",
    elsewhere="2001:db8:80::80",
    record="AAAA",
    host_length=128,
)
OF_FAMILY: Final[dict[int, Addresses]] = {4: IPV4, 6: IPV6}


def of_families(families: Sequence[Family]) -> tuple[Addresses, ...]:
    """The plans of some families; the first is the cluster's primary one."""
    return tuple(OF_FAMILY[one] for one in families)
