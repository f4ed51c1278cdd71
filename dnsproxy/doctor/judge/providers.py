"""Providers: the vendor of a load balancer, whether it sends the PROXY header, and how its address leaves the status.

The law: a table with one row for each provider, read from the sources of their controllers; a fact that the sources do
not show is unknown here too (`Sends.UNKNOWN`, no remedy). A provider is recognised by annotations, then by the class of
the load balancer, then by the nodes' providerID.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.judge.header_annotations import HeaderSwitch, Sends, SwitchFormat, read_switches

_BETA: Final = "service.beta.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider."""

    name: str
    marks: tuple[str, ...] = ()
    """Prefixes of annotation keys."""
    classes: tuple[str, ...] = ()
    """Prefixes of spec.loadBalancerClass."""
    schemes: tuple[str, ...] = ()
    """Of the nodes' spec.providerID."""
    switches: tuple[HeaderSwitch, ...] = ()
    elsewhere: str = ""
    """What else turns the header on, invisible in the annotations of the Service."""
    never_sends: bool = False
    """Whether its load balancers cannot send the header."""
    ip_mode_key: str = ""
    ip_mode_value: str = ""
    """The annotation that makes the provider set `ipMode: Proxy`."""
    ip_mode_auto: str = ""
    """When its controller sets `ipMode: Proxy` by itself."""
    hostname_key: str = ""
    hostname_value: str = ""
    """Empty: any name that resolves to the load balancer."""
    hostname_note: str = ""
    note: str = ""
    """A remark, as a sentence without the final stop."""


HETZNER: Final = Provider(
    "Hetzner",
    marks=("load-balancer.hetzner.cloud/",),
    schemes=("hcloud", "hrobot"),
    switches=(HeaderSwitch("load-balancer.hetzner.cloud/uses-proxyprotocol"),),
    elsewhere="HCLOUD_LOAD_BALANCERS_USES_PROXYPROTOCOL of the hcloud-cloud-controller-manager",
    ip_mode_auto="hcloud-cloud-controller-manager v1.21.0 or newer sets `ipMode: Proxy` itself if PROXY is on",
    hostname_key="load-balancer.hetzner.cloud/hostname",
)
DIGITAL_OCEAN: Final = Provider(
    "DigitalOcean",
    marks=(f"{_BETA}do-loadbalancer-", "kubernetes.digitalocean.com/"),
    schemes=("digitalocean",),
    switches=(HeaderSwitch(f"{_BETA}do-loadbalancer-enable-proxy-protocol"),),
    hostname_key=f"{_BETA}do-loadbalancer-hostname",
    hostname_note="create the DNS record first",
)
SCALEWAY: Final = Provider(
    "Scaleway",
    marks=(f"{_BETA}scw-loadbalancer-",),
    schemes=("scaleway",),
    switches=(
        HeaderSwitch(f"{_BETA}scw-loadbalancer-proxy-protocol-v1", SwitchFormat.PORTS, "*"),
        HeaderSwitch(f"{_BETA}scw-loadbalancer-proxy-protocol-v2", SwitchFormat.PORTS, "*"),
    ),
    ip_mode_key=f"{_BETA}scw-loadbalancer-ip-mode",
    ip_mode_value="Proxy",
    hostname_key=f"{_BETA}scw-loadbalancer-use-hostname",
    hostname_value="true",
    hostname_note="the name is the reverse name of the load balancer's address",
    note="it sets `ipMode: Proxy` by itself only if PROXY is on for all ports",
)
LINODE: Final = Provider(
    "Linode",
    marks=(f"{_BETA}linode-loadbalancer-",),
    schemes=("linode",),
    switches=(HeaderSwitch(f"{_BETA}linode-loadbalancer-default-proxy-protocol", SwitchFormat.VERSION, "v1"),),
    hostname_key=f"{_BETA}linode-loadbalancer-hostname-only-ingress",
    hostname_value="true",
    hostname_note="a DNS record of your own is not needed",
)
VULTR: Final = Provider(
    "Vultr",
    marks=(f"{_BETA}vultr-loadbalancer-",),
    schemes=("vultr",),
    switches=(HeaderSwitch(f"{_BETA}vultr-loadbalancer-proxy-protocol"),),
    hostname_key=f"{_BETA}vultr-loadbalancer-hostname",
)
CIVO: Final = Provider(
    "Civo",
    marks=("kubernetes.civo.com/",),
    schemes=("civo",),
    switches=(HeaderSwitch("kubernetes.civo.com/loadbalancer-enable-proxy-protocol", SwitchFormat.MODE, "send-proxy"),),
    note="it removes the ip from the status by itself if PROXY is on",
)
UPCLOUD: Final = Provider(
    "UpCloud",
    marks=(f"{_BETA}upcloud-load-balancer-",),
    schemes=("upcloud",),
    switches=(HeaderSwitch(f"{_BETA}upcloud-load-balancer-config", SwitchFormat.CONFIG, ""),),
    note="its status has a hostname by itself",
)
STACKIT: Final = Provider(
    "STACKIT",
    marks=("lb.stackit.cloud/",),
    schemes=("stackit",),
    switches=(HeaderSwitch("lb.stackit.cloud/tcp-proxy-protocol"),),
    ip_mode_key="lb.stackit.cloud/ip-mode-proxy",
    ip_mode_value="true",
)
ORACLE: Final = Provider(
    "Oracle",
    marks=(f"{_BETA}oci-load-balancer-", "oci.oraclecloud.com/", "oci-network-load-balancer.oraclecloud.com/"),
    schemes=("oci", "ocid1"),
    switches=(HeaderSwitch(f"{_BETA}oci-load-balancer-connection-proxy-protocol-version", SwitchFormat.VERSION, "1"),),
    ip_mode_key="oci.oraclecloud.com/ingress-ip-mode",
    ip_mode_value="proxy",
)
OVH: Final = Provider(
    "OVH",
    marks=(f"{_BETA}ovh-loadbalancer-", "loadbalancer.ovhcloud.com/"),
    switches=(
        HeaderSwitch(f"{_BETA}ovh-loadbalancer-proxy-protocol", SwitchFormat.VERSION, "v1"),
        HeaderSwitch("loadbalancer.openstack.org/proxy-protocol", SwitchFormat.VERSION, "v1"),
    ),
    hostname_key="loadbalancer.openstack.org/hostname",
    hostname_note="on load balancers of Octavia; older ones have no hostname",
)
OPENSTACK: Final = Provider(
    "OpenStack",
    marks=("loadbalancer.openstack.org/",),
    schemes=("openstack",),
    switches=(HeaderSwitch("loadbalancer.openstack.org/proxy-protocol", SwitchFormat.VERSION, "v1"),),
    ip_mode_auto="a recent openstack-cloud-controller-manager sets `ipMode: Proxy` itself if PROXY is on and "
    "enable-ingress-hostname is off",
    hostname_key="loadbalancer.openstack.org/hostname",
)
EXOSCALE: Final = Provider(
    "Exoscale",
    marks=(f"{_BETA}exoscale-loadbalancer-",),
    schemes=("exoscale",),
    never_sends=True,
    note="its load balancers preserve the client's address with externalTrafficPolicy: Local, and have no PROXY header",
)
ALIBABA: Final = Provider(
    "Alibaba",
    marks=(f"{_BETA}alibaba-cloud-loadbalancer-", f"{_BETA}alicloud-loadbalancer-"),
    classes=("alibabacloud.com/",),
    schemes=("alicloud",),
    switches=(HeaderSwitch(f"{_BETA}alibaba-cloud-loadbalancer-proxy-protocol", on="on"),),
    hostname_key=f"{_BETA}alibaba-cloud-loadbalancer-hostname",
    hostname_note="on CLB; an NLB has a hostname by itself",
)
CLOUD_STACK: Final = Provider(
    "CloudStack",
    marks=(f"{_BETA}cloudstack-load-balancer-",),
    schemes=("cloudstack", "external-cloudstack"),
    switches=(HeaderSwitch(f"{_BETA}cloudstack-load-balancer-proxy-protocol"),),
    hostname_key=f"{_BETA}cloudstack-load-balancer-hostname",
)
OUTSCALE: Final = Provider(
    "Outscale",
    marks=(f"{_BETA}osc-load-balancer-",),
    schemes=("osc",),
    switches=(HeaderSwitch(f"{_BETA}osc-load-balancer-proxy-protocol", SwitchFormat.PORTS, "*"),),
    elsewhere="its documentation",
    hostname_key=f"{_BETA}osc-load-balancer-ingress-address",
    hostname_value="hostname",
)
AWS: Final = Provider(
    "AWS",
    marks=(f"{_BETA}aws-load-balancer-",),
    classes=("service.k8s.aws/", "eks.amazonaws.com/"),
    schemes=("aws",),
    switches=(
        HeaderSwitch(f"{_BETA}aws-load-balancer-proxy-protocol", SwitchFormat.PORTS, "*"),
        HeaderSwitch(
            f"{_BETA}aws-load-balancer-target-group-attributes",
            SwitchFormat.ATTRIBUTE,
            "proxy_protocol_v2.enabled=true",
        ),
    ),
    note="its status has only a hostname, so nothing is short-circuited",
)
AZURE: Final = Provider(
    "Azure",
    marks=(f"{_BETA}azure-",),
    schemes=("azure",),
    never_sends=True,
    note="its load balancers preserve the client's address and have no PROXY header",
)
GOOGLE: Final = Provider(
    "Google Cloud",
    marks=("cloud.google.com/", "networking.gke.io/"),
    schemes=("gce",),
    never_sends=True,
    note="its Services' load balancers pass packets through and have no PROXY header",
)
METALLB: Final = Provider(
    "MetalLB",
    marks=("metallb.universe.tf/", "metallb.io/"),
    classes=("metallb",),
    never_sends=True,
    note="it cannot send the PROXY header or set ipMode: the header comes from a proxy in front of it",
)
KUBE_VIP: Final = Provider(
    "kube-vip",
    marks=("kube-vip.io/",),
    classes=("kube-vip.io/",),
    never_sends=True,
    note=METALLB.note,
)
CILIUM_LB: Final = Provider(
    "Cilium LB-IPAM",
    marks=("io.cilium/lb-ipam", "lbipam.cilium.io/"),
    classes=("io.cilium/",),
    never_sends=True,
    note=f"{METALLB.note}; if Cilium itself announces the address, `ipMode: Proxy` would make it unreachable",
)
UNKNOWN: Final = Provider("an unknown provider")

PROVIDERS: Final = (
    HETZNER, DIGITAL_OCEAN, SCALEWAY, LINODE, VULTR, CIVO, UPCLOUD, STACKIT, ORACLE, OVH, OPENSTACK, EXOSCALE, ALIBABA,
    CLOUD_STACK, OUTSCALE, AWS, AZURE, GOOGLE, METALLB, KUBE_VIP, CILIUM_LB,
)  # fmt: skip
"""OVH and STACKIT run OpenStack's controllers, so their own marks are checked first."""

ANNOTATION_MARKS: Final = tuple(mark for provider in PROVIDERS for mark in provider.marks)
"""Prefixes of annotations about load balancers; other annotations never enter the facts."""

_BY_CLASS: Final = MappingProxyType({name: one for one in PROVIDERS for name in one.classes})
_BY_SCHEME: Final = MappingProxyType({scheme: one for one in PROVIDERS for scheme in one.schemes})


def provider_of(service: Service, scheme: str = "") -> Provider:
    """The provider of a Service's load balancer; `scheme` is that of the nodes' providerID."""
    for provider in PROVIDERS:
        if any(key.startswith(mark) for key in service.annotations for mark in provider.marks):
            return provider
    for beginning, provider in _BY_CLASS.items():
        if service.load_balancer_class.startswith(beginning):
            return provider
    return _BY_SCHEME.get(scheme, UNKNOWN)


def sends(provider: Provider, annotations: Mapping[str, str]) -> Sends:
    """Whether a load balancer is set to send the header."""
    if provider.never_sends:
        return Sends.NO
    said = read_switches(provider.switches, annotations)
    # Without an annotation most providers do not send it; some have a setting for the whole cluster elsewhere.
    return said or (Sends.UNKNOWN if provider.elsewhere or not provider.switches else Sends.NO)
