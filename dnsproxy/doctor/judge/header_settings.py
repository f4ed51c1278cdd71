"""The settings with which a controller expects the PROXY header, as an owner writes them.

The law: pure. A program that is not known gets the words for the most common one, with its name. Sources: those of
declared_header.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dnsproxy.doctor.facts.model import Service

_COMMON: Final = "ingress-nginx"
_SWITCHES: Final[Mapping[str, tuple[str, str]]] = {
    _COMMON: ('`use-proxy-protocol: "true"` in its ConfigMap', '`use-proxy-protocol: "false"` in its ConfigMap'),
    "haproxy-ingress": ('`use-proxy-protocol: "true"` in its ConfigMap', "no `use-proxy-protocol` in its ConfigMap"),
    "nginx-ingress": ('`proxy-protocol: "True"` in its ConfigMap', "no `proxy-protocol` in its ConfigMap"),
    "kubernetes-ingress": ("`proxy-protocol: NETWORKS` in its ConfigMap", "no `proxy-protocol` in its ConfigMap"),
    "cilium": (
        "`enable-ingress-proxy-protocol`, or `enable-gateway-api-proxy-protocol` for Gateways, in `cilium-config`",
        "no `enable-ingress-proxy-protocol`, or `enable-gateway-api-proxy-protocol` for Gateways, in `cilium-config`",
    ),
    "envoy-gateway": (
        "`proxyProtocol: {}` in a ClientTrafficPolicy of the Gateway",
        "no `proxyProtocol` in the Gateway's ClientTrafficPolicy, or `optional: true` in it",
    ),
    "skipper": (
        "the flags `-enable-proxy-protocol` and `-proxy-allow-cidrs=NETWORKS`",
        "no `-enable-proxy-protocol`",
    ),
    "traefik": (
        "`proxyProtocol.trustedIPs` of the entry point",
        "no `proxyProtocol` of the entry point",
    ),
    "contour": ("the flag `--use-proxy-protocol` of `contour serve`", "no `--use-proxy-protocol` for `contour serve`"),
}
"""On and off, by program."""
_ABOUT_HEADER: Final = ("proxy-protocol", "proxy-allow-cidrs", "proxy-deny-cidrs", "proxy-skip-cidrs")


def turn_on(service: Service) -> str:
    """What turns the header on at a Service's controller: `contour: the flag ...`."""
    return _format(service, 0)


def turn_off(service: Service) -> str:
    """What turns it off."""
    return _format(service, 1)


def format_settings(service: Service) -> Iterator[str]:
    """A line for each setting about the header that was read, with its place."""
    for key, value in sorted(service.settings.items()):
        if any(part in key for part in _ABOUT_HEADER):
            yield f"{key} is {value!r}, according to {service.settings_from}"


def _format(service: Service, side: int) -> str:
    program = service.program if service.program in _SWITCHES else _COMMON
    return f"{program}: {_SWITCHES[program][side]}"
