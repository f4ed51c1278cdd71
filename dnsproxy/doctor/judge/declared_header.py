"""The header mode that a controller's own settings declare, for the connections of this cluster's pods.

The law: a setting means what its program's source says, and a key means nothing without its program, unless its value
shows which program it is for. Networks count only if they hold all sources of pods, or none. What the settings leave
open is UNKNOWN. All sources were read on 2026-11-22:

- ingress-nginx, `use-proxy-protocol` (kubernetes/ingress-nginx internal/ingress/controller/config/config.go and
  rootfs/etc/nginx/template/nginx.tmpl, helm chart 3.15.2): `listen ... proxy_protocol`, which requires the header; the
  default is false.
- haproxy-ingress, `use-proxy-protocol` (jcmoraisjr/haproxy-ingress docs/content/en/docs/configuration/keys.md, v0.17):
  `bind ... accept-proxy`, which requires the header; the default is false. Its `proxy-protocol` is about backends.
- kubernetes-ingress of HAProxy Technologies, `proxy-protocol` (haproxytech/kubernetes-ingress
  pkg/handler/proxy-protocol.go and documentation/doc.yaml, v3.2.11): `tcp-request connection expect-proxy layer4 if
  { src -f NETWORKS }`, which requires the header of these sources and takes it of no other. Invalid words are skipped.
- nginx-ingress of F5, `proxy-protocol` (nginx/kubernetes-ingress internal/configs/configmaps.go, v4.0.1): a boolean;
  `listen ... proxy_protocol`; the default is false.
- Traefik, `entryPoints.NAME.proxyProtocol` (traefik/traefik pkg/server/server_entrypoint_tcp.go, v3.7.9 with
  pires/go-proxyproto v0.12.0; the same in v2.11 with v0.6.1): USE for trusted sources, IGNORE for others. Both parse a
  header and do without one; IGNORE only drops its addresses. So the entry point accepts both, from every source.
- Cilium, `enable-ingress-proxy-protocol` and `enable-gateway-api-proxy-protocol` (cilium/cilium
  operator/pkg/model/translation/envoy_listener.go): Envoy's listener filter with its defaults, which requires the
  header ("only Proxy protocol traffic will be accepted"); the default is false. The filter itself: Envoy v1.30.2,
  docs/configuration/listeners/listener_filters/proxy_protocol.
- Contour, `--use-proxy-protocol` (projectcontour/contour cmd/contour/serve.go, 000ee1d5c60e): "for all listeners", by
  the same filter. Without the flag, a ContourConfiguration may still turn it on.
- Envoy Gateway, `proxyProtocol` of a ClientTrafficPolicy (envoyproxy/gateway api/v1alpha1/clienttrafficpolicy_types.go,
  v1.9.1): the same filter, which requires the header unless `optional` is true. Without it, an EnvoyPatchPolicy may
  still turn it on.
- skipper, `-enable-proxy-protocol` with `-proxy-allow-cidrs`, `-proxy-deny-cidrs` and `-proxy-skip-cidrs`
  (zalando/skipper proxylistener/proxylistener.go, v0.27.41 with pires/go-proxyproto v0.15.0): USE for allowed sources,
  REJECT for others, SKIP for skipped ones. Each takes connections without a header; REJECT refuses a header, and SKIP
  hands it to HTTP. Without the flag a file may still turn it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Final

from dnsproxy.doctor.facts.model import Facts, Service
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.doctor.judge.paths import GATEWAY_LABELS

_TRUE: Final = frozenset(["1", "t", "T", "TRUE", "true", "True"])
_FALSE: Final = frozenset(["0", "f", "F", "FALSE", "false", "False"])
"""As strconv.ParseBool reads them."""
_USE: Final = "use-proxy-protocol"
_KEY: Final = "proxy-protocol"

Network = IPv4Network | IPv6Network


def declared(service: Service, facts: Facts) -> HeaderMode:
    """The mode by the controller's own settings, for a controller that could not be dialled."""
    read = _BY_PROGRAM.get(service.program, _by_value)
    return read(service, facts)


def trusts_by_source(service: Service) -> bool:
    """Whether its settings take the header from some sources alone: a refusal of ours says nothing about others."""
    key = {"skipper": "proxy-allow-cidrs", "kubernetes-ingress": _KEY, "": _KEY}.get(service.program, "")
    networks = parse_networks(service.settings.get(key, "").split(","))
    return bool(networks) and all(network.prefixlen for network in networks)


def _use_switch(service: Service, _: Facts) -> HeaderMode:
    return _switch(service, _USE)


def _f5(service: Service, _: Facts) -> HeaderMode:
    return _switch(service, _KEY)


def _cilium(service: Service, _: Facts) -> HeaderMode:
    by_gateway = not service.labels.keys().isdisjoint(GATEWAY_LABELS)
    return _switch(service, f"enable-{'gateway-api' if by_gateway else 'ingress'}-proxy-protocol")


def _contour(service: Service, _: Facts) -> HeaderMode:
    mode = _switch(service, _USE)
    return mode if mode is HeaderMode.REQUIRES else HeaderMode.UNKNOWN


def _switch(service: Service, key: str) -> HeaderMode:
    """The mode by a boolean; if the settings were read, an absent key is off."""
    text = service.settings.get(key)
    if text is None:
        return HeaderMode.REJECTS if service.settings_from else HeaderMode.UNKNOWN
    if text.strip() in _TRUE:
        return HeaderMode.REQUIRES
    return HeaderMode.REJECTS if text.strip() in _FALSE else HeaderMode.UNKNOWN


def _haproxy(service: Service, facts: Facts) -> HeaderMode:
    """REQUIRES if all sources of pods are in the networks, REJECTS if none is."""
    text = service.settings.get(_KEY)
    if text is None:
        return HeaderMode.REJECTS if service.settings_from else HeaderMode.UNKNOWN
    networks = parse_networks(text.split(","))
    families = {4, 6} & _families(service)
    if families <= {network.version for network in networks if not network.prefixlen}:
        return HeaderMode.REQUIRES
    if not any(network.version in families for network in networks):
        return HeaderMode.REJECTS
    # A source that is not known may be in the networks or not.
    sources = _sources(service, facts)
    if sources is None:
        return HeaderMode.UNKNOWN
    if all(_is_inside(source, networks) for source in sources):
        return HeaderMode.REQUIRES
    return HeaderMode.UNKNOWN if any(map(_overlaps(networks), sources)) else HeaderMode.REJECTS


def _families(service: Service) -> set[int]:
    """The families of the addresses by which pods reach a Service; IPv4 if it has none."""
    texts = [*service.cluster_ips, *service.external_ips, *(point.ip for point in service.points)]
    return {network.version for network in parse_networks(texts)} or {4}


def _is_inside(source: Network, networks: Iterable[Network]) -> bool:
    return any(_contains(network, source) for network in networks)


def _contains(network: Network, source: Network) -> bool:
    return network.version == source.version and source.subnet_of(network)  # type: ignore[arg-type]


def _overlaps(networks: Iterable[Network]) -> Callable[[Network], bool]:
    known = tuple(networks)
    return lambda source: any(_contains(one, source) or _contains(source, one) for one in known)


def _traefik(service: Service, _: Facts) -> HeaderMode:
    """By the entry points that have the names of the Service's ports, as in Traefik's chart; otherwise by all."""
    found = _listed(service.settings.get("entrypoints", ""))
    meant = found & {port.name.lower() for port in service.ports} or found
    on = meant & _listed(service.settings.get("entrypoints-with-proxy-protocol", ""))
    if not meant:
        return HeaderMode.UNKNOWN
    if on == meant:
        return HeaderMode.ACCEPTS
    return HeaderMode.UNKNOWN if on else HeaderMode.REJECTS


def _envoy_gateway(service: Service, _: Facts) -> HeaderMode:
    modes = {"required": HeaderMode.REQUIRES, "optional": HeaderMode.ACCEPTS}
    return modes.get(service.settings.get(_KEY, ""), HeaderMode.UNKNOWN)


def _skipper(service: Service, facts: Facts) -> HeaderMode:
    """ACCEPTS if the header of all sources of pods is used, REJECTS if that of none is."""
    sources = _sources(service, facts)
    if service.settings.get("enable-proxy-protocol", "").strip() not in _TRUE or sources is None:
        return HeaderMode.UNKNOWN
    allowed, denied, skipped = (
        parse_networks(service.settings.get(f"proxy-{kind}-cidrs", "").split(",")) for kind in ("allow", "deny", "skip")
    )
    if not any(map(_overlaps(allowed), sources)):
        return HeaderMode.REJECTS
    excepted = any(map(_overlaps([*denied, *skipped]), sources))
    every = all(_is_inside(one, allowed) for one in sources) and not excepted
    return HeaderMode.ACCEPTS if every else HeaderMode.UNKNOWN


def _sources(service: Service, facts: Facts) -> list[Network] | None:
    """The sources that pods have: their own and the nodes'; None if those of pods are not known."""
    families = _families(service)
    pods = [network for network in parse_networks(facts.pod_networks) if network.version in families]
    if {network.version for network in pods} != families:
        return None
    return [*pods, *(one for one in parse_networks(facts.node_addresses) if one.version in families)]


def _listed(text: str) -> set[str]:
    return {word.strip().lower() for word in text.split(",") if word.strip()}


def _by_value(service: Service, facts: Facts) -> HeaderMode:
    """For an unknown program: only values that one program alone has count."""
    text = service.settings.get(_KEY, "")
    if text.strip() in _TRUE | _FALSE:
        return _switch(service, _KEY)
    if parse_networks(text.split(",")):
        return _haproxy(service, facts)
    return _switch(service, _USE) if _USE in service.settings else HeaderMode.UNKNOWN


def parse_networks(texts: Iterable[str]) -> list[Network]:
    """The networks and addresses among texts, collapsed; other texts are skipped."""
    found: list[Network] = []
    for text in texts:
        try:
            found.append(ip_network(text.strip(), strict=False))
        except ValueError:
            continue
    v4 = collapse_addresses(one for one in found if isinstance(one, IPv4Network))
    v6 = collapse_addresses(one for one in found if isinstance(one, IPv6Network))
    return [*v4, *v6]


_BY_PROGRAM: Final[Mapping[str, Callable[[Service, Facts], HeaderMode]]] = {
    "ingress-nginx": _use_switch,
    "haproxy-ingress": _use_switch,
    "kubernetes-ingress": _haproxy,
    "nginx-ingress": _f5,
    "traefik": _traefik,
    "cilium": _cilium,
    "contour": _contour,
    "envoy-gateway": _envoy_gateway,
    "skipper": _skipper,
}
