"""The load balancer in the status of an Ingress or Service: its public addresses and hostnames.

The law: pure; values that are neither an address nor a hostname are ignored: a controller may write anything.
https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-v1/#ServiceStatus
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from dnsproxy.dns.addresses import parse_address
from dnsproxy.dns.names import parse_hostname


class _Point(msgspec.Struct, frozen=True, gc=False):
    """LoadBalancerIngress, without its ports and ipMode."""

    ip: str | None = None
    hostname: str | None = None


class _LoadBalancer(msgspec.Struct, frozen=True, gc=False):
    ingress: tuple[_Point | None, ...] | None = None


class BalancedStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The part of an object's status that is read here."""

    load_balancer: _LoadBalancer | None = None


def parse_point(text: str) -> str | None:
    """An address or a hostname in normal form; None for any other text."""
    for parse in (parse_address, parse_hostname):
        try:
            return parse(text)
        except ValueError:
            continue
    return None


def points_of(status: BalancedStatus | None) -> tuple[str, ...]:
    """Its addresses and hostnames in the form of Terms.status, each once."""
    if status is None or status.load_balancer is None or not status.load_balancer.ingress:
        return ()
    return _read(status.load_balancer.ingress)


@lru_cache(maxsize=1024)
def _read(points: tuple[_Point | None, ...]) -> tuple[str, ...]:
    """Cached, because 100,000 objects behind one load balancer have the same status."""
    return tuple(dict.fromkeys(text for point in points if point is not None for text in _texts_of(point)))


def _texts_of(point: _Point) -> Iterator[str]:
    for text, parse in ((point.ip, parse_address), (point.hostname, parse_hostname)):
        try:
            if text:
                yield parse(text)
        except ValueError:
            continue
