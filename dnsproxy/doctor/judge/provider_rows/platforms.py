"""Rows of platforms that several hosters run, and of hosters that run them.

The law: as provider.py says. OVH and STACKIT run controllers of OpenStack, so their own marks are checked first.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from dnsproxy.doctor.judge.annotation_values import exactly, node_ports, port_filter
from dnsproxy.doctor.judge.header_annotations import HeaderSwitch
from dnsproxy.doctor.judge.provider import Kind, Provider, Source, StatusSetting

_BETA: Final = "service.beta.kubernetes.io/"
_READ: Final = date(2026, 11, 22)

_STACKIT: Final = "stackitcloud/cloud-provider-stackit"
STACKIT: Final = Provider(
    "STACKIT",
    sources=(
        Source(_STACKIT, "pkg/ccm/loadbalancer_spec.go", "v1.36.3", _READ),
        Source(_STACKIT, "pkg/ccm/loadbalancer.go", "v1.36.3", _READ),
    ),
    marks=("lb.stackit.cloud/", "yawol.stackit.cloud/"),
    schemes=("stackit",),
    switches=(
        HeaderSwitch("lb.stackit.cloud/tcp-proxy-protocol-ports-filter", port_filter, ""),
        HeaderSwitch("yawol.stackit.cloud/tcpProxyProtocolPortsFilter", port_filter, ""),
        HeaderSwitch("lb.stackit.cloud/tcp-proxy-protocol"),
        HeaderSwitch("yawol.stackit.cloud/tcpProxyProtocol", on=""),
    ),
    ip_mode=StatusSetting(
        "lb.stackit.cloud/ip-mode-proxy",
        "true",
        since="cloud-provider-stackit v1.31.6, v1.32.7, v1.33.6, v1.34.0",
    ),
)
_OPENSTACK: Final = "kubernetes/cloud-provider-openstack"
_OCTAVIA_SWITCH: Final = HeaderSwitch(
    "loadbalancer.openstack.org/proxy-protocol", exactly("true", "v1", "v2"), "v1", ("Octavia",)
)
OPENSTACK: Final = Provider(
    "OpenStack",
    sources=(Source(_OPENSTACK, "pkg/openstack/loadbalancer.go", "v1.36.0", _READ),),
    marks=("loadbalancer.openstack.org/",),
    schemes=("openstack",),
    switches=(_OCTAVIA_SWITCH,),
    ip_mode_auto="openstack-cloud-controller-manager v1.30.0 or newer sets `ipMode: Proxy` itself if PROXY is on and "
    "enable-ingress-hostname is off",
    hostname=StatusSetting("loadbalancer.openstack.org/hostname", since="openstack-cloud-controller-manager v1.25.0"),
    note="`v2` needs openstack-cloud-controller-manager v1.31.0 or newer",
)
_OVH_DOCS: Final = "pages/public_cloud/containers_orchestration/managed_kubernetes"
_OVH_CLASS: Final = "loadbalancer.ovhcloud.com/class"
OVH: Final = Provider(
    "OVH",
    sources=(
        Source("ovh/docs", f"{_OVH_DOCS}/using-lb/guide.en-gb.md", "0ff4fc0e5e57", _READ),
        Source(
            "ovh/docs",
            f"{_OVH_DOCS}/expose_your_applications_using_a_load_balancer/guide.en-gb.md",
            "01d41b04ae31",
            _READ,
        ),
        *OPENSTACK.sources,
    ),
    marks=(f"{_BETA}ovh-loadbalancer-", "loadbalancer.ovhcloud.com/"),
    kinds=(Kind("Octavia", _OVH_CLASS, ("octavia",)), Kind("IOLB", _OVH_CLASS, ("iolb",))),
    switches=(
        _OCTAVIA_SWITCH,
        HeaderSwitch(
            f"{_BETA}ovh-loadbalancer-proxy-protocol",
            exactly("v1", "v2", "v2-ssl", "v2-ssl-cn", "v2_ssl", "v2_ssl_cn"),
            "v1",
            ("IOLB",),
        ),
    ),
    hostname=StatusSetting(
        "loadbalancer.openstack.org/hostname",
        note="on load balancers of Octavia; older ones have none",
        kinds=("Octavia",),
    ),
    note="Kubernetes 1.31 and newer has load balancers of Octavia, older versions only with "
    f"`{_OVH_CLASS}: octavia`; the others (IOLB) take the annotation of OVH",
    unverified="the controller of the older load balancers, which is not public (its guide spells `v2-ssl` and "
    "`v2_ssl`), and whether OVH's own build of the OpenStack controller sets `ipMode: Proxy`",
)
_CLOUD_STACK: Final = "apache/cloudstack-kubernetes-provider"
CLOUD_STACK: Final = Provider(
    "CloudStack",
    sources=(
        Source(_CLOUD_STACK, "cloudstack_loadbalancer.go", "v1.2.0-rc1", _READ),
        Source(_CLOUD_STACK, "protocol.go", "v1.2.0-rc1", _READ),
    ),
    marks=(f"{_BETA}cloudstack-load-balancer-",),
    schemes=("cloudstack", "external-cloudstack"),
    switches=(HeaderSwitch(f"{_BETA}cloudstack-load-balancer-proxy-protocol", exactly("true")),),
    writes_no_ip_mode=True,
    hostname=StatusSetting(f"{_BETA}cloudstack-load-balancer-hostname", since="cloudstack-kubernetes-provider v1.1.0"),
)
_OUTSCALE: Final = "outscale/cloud-provider-osc"
OUTSCALE: Final = Provider(
    "Outscale",
    sources=(
        Source(_OUTSCALE, "ccm/cloud/loadbalancer.go", "64174f3b1d8f", _READ),
        Source(_OUTSCALE, "ccm/cloud/annotations.go", "v1.36.7", _READ),
        Source(_OUTSCALE, "docs/CHANGELOG.md", "64174f3b1d8f", _READ),
    ),
    marks=(f"{_BETA}osc-load-balancer-",),
    switches=(HeaderSwitch(f"{_BETA}osc-load-balancer-proxy-protocol", node_ports, "*"),),
    ip_mode=StatusSetting(
        f"{_BETA}osc-load-balancer-ingress-ipmode",
        "Proxy",
        since="cloud-provider-osc v1.31.0, v1.32.0, v1.33.0, v1.34.1",
    ),
    ip_mode_auto="cloud-provider-osc v1.31.2, v1.32.2, v1.33.2, v1.34.2 or newer sets `ipMode: Proxy` itself if the "
    "status has an address",
    hostname=StatusSetting(
        f"{_BETA}osc-load-balancer-ingress-address",
        "hostname",
        since="cloud-provider-osc v1.0.1",
        note="from v1.0.1 it is the default",
    ),
    note="the nodes' providerID begins with `aws`, so it is recognised by its annotations alone",
)
