"""Rows of hosters of whole clusters or their machines, each with a controller of its own.

The law: as provider.py says.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from dnsproxy.doctor.judge.annotation_values import (
    a_mode,
    flag_or_ports,
    in_any_case,
    linode_port,
    scaleway_ports,
    upcloud_config,
)
from dnsproxy.doctor.judge.header_annotations import HeaderSwitch
from dnsproxy.doctor.judge.provider import Provider, Source, StatusSetting

_BETA: Final = "service.beta.kubernetes.io/"
_READ: Final = date(2026, 11, 22)

_HCLOUD: Final = "hetznercloud/hcloud-cloud-controller-manager"
HETZNER: Final = Provider(
    "Hetzner",
    sources=(
        Source(_HCLOUD, "internal/annotation/name.go", "v1.35.0", _READ),
        Source(_HCLOUD, "hcloud/load_balancers.go", "v1.35.0", _READ),
        Source(_HCLOUD, "CHANGELOG.md", "v1.35.0", _READ),
    ),
    marks=("load-balancer.hetzner.cloud/",),
    schemes=("hcloud", "hrobot"),
    switches=(HeaderSwitch("load-balancer.hetzner.cloud/uses-proxyprotocol"),),
    elsewhere="HCLOUD_LOAD_BALANCERS_USES_PROXYPROTOCOL of the hcloud-cloud-controller-manager",
    ip_mode_auto="hcloud-cloud-controller-manager sets `ipMode: Proxy` itself if PROXY is on: from v1.21.0 if the "
    "annotation turns it on, and from v1.29.1 also if HCLOUD_LOAD_BALANCERS_USES_PROXYPROTOCOL does",
    hostname=StatusSetting("load-balancer.hetzner.cloud/hostname"),
)
_DO: Final = "digitalocean/digitalocean-cloud-controller-manager"
DIGITAL_OCEAN: Final = Provider(
    "DigitalOcean",
    sources=(
        Source(_DO, "cloud-controller-manager/do/annotations.go", "v0.1.68", _READ),
        Source(_DO, "cloud-controller-manager/do/loadbalancers.go", "70d527e38456", _READ),
        Source(_DO, "docs/controllers/services/annotations.md", "70d527e38456", _READ),
    ),
    marks=(f"{_BETA}do-loadbalancer-", "kubernetes.digitalocean.com/"),
    schemes=("digitalocean",),
    switches=(HeaderSwitch(f"{_BETA}do-loadbalancer-enable-proxy-protocol"),),
    writes_no_ip_mode=True,
    hostname=StatusSetting(
        f"{_BETA}do-loadbalancer-hostname",
        since="digitalocean-cloud-controller-manager v0.1.17",
        note="create the DNS record first",
    ),
)
_SCW: Final = "scaleway/scaleway-cloud-controller-manager"
SCALEWAY: Final = Provider(
    "Scaleway",
    sources=(
        Source(_SCW, "scaleway/loadbalancers.go", "v0.36.2", _READ),
        Source(_SCW, "scaleway/loadbalancers_annotations.go", "v0.36.2", _READ),
    ),
    marks=(f"{_BETA}scw-loadbalancer-",),
    schemes=("scaleway",),
    switches=(
        HeaderSwitch(f"{_BETA}scw-loadbalancer-proxy-protocol-v1", scaleway_ports, "*"),
        HeaderSwitch(f"{_BETA}scw-loadbalancer-proxy-protocol-v2", scaleway_ports, "*"),
        HeaderSwitch(f"{_BETA}scw-loadbalancer-send-proxy-v2", flag_or_ports, "true"),
    ),
    ip_mode=StatusSetting(
        f"{_BETA}scw-loadbalancer-ip-mode", "Proxy", since="scaleway-cloud-controller-manager v0.33.0"
    ),
    ip_mode_auto="scaleway-cloud-controller-manager v0.33.0 or newer sets `ipMode: Proxy` itself if PROXY is on for "
    "all ports",
    hostname=StatusSetting(
        f"{_BETA}scw-loadbalancer-use-hostname",
        "true",
        note="the name is the reverse name of the load balancer's address",
    ),
)
_LINODE: Final = "linode/linode-cloud-controller-manager"
LINODE: Final = Provider(
    "Linode",
    sources=(
        Source(_LINODE, "cloud/linode/loadbalancers_helpers.go", "v0.9.8", _READ),
        Source(_LINODE, "cloud/linode/loadbalancers.go", "v0.9.8", _READ),
    ),
    marks=(f"{_BETA}linode-loadbalancer-",),
    schemes=("linode",),
    switches=(
        HeaderSwitch(
            f"{_BETA}linode-loadbalancer-port-{{port}}", linode_port, "", part='`"proxy-protocol": "v1"` for one port'
        ),
        HeaderSwitch(f"{_BETA}linode-loadbalancer-default-proxy-protocol", in_any_case("v1", "v2"), "v1"),
        HeaderSwitch(f"{_BETA}linode-loadbalancer-proxy-protocol", in_any_case("v1", "v2"), ""),
    ),
    writes_no_ip_mode=True,
    hostname=StatusSetting(
        f"{_BETA}linode-loadbalancer-hostname-only-ingress",
        "true",
        since="linode-cloud-controller-manager v0.3.13",
        note="a DNS record of your own is not needed",
    ),
)
VULTR: Final = Provider(
    "Vultr",
    sources=(Source("vultr/vultr-cloud-controller-manager", "vultr/loadbalancers.go", "v0.18.0", _READ),),
    marks=(f"{_BETA}vultr-loadbalancer-",),
    schemes=("vultr",),
    switches=(HeaderSwitch(f"{_BETA}vultr-loadbalancer-proxy-protocol"),),
    writes_no_ip_mode=True,
    hostname=StatusSetting(f"{_BETA}vultr-loadbalancer-hostname", since="vultr-cloud-controller-manager v0.13.1"),
)
_CIVO: Final = "civo/civo-cloud-controller-manager"
CIVO: Final = Provider(
    "Civo",
    sources=(
        Source(_CIVO, "cloud-controller-manager/civo/loadbalancer.go", "0c98dc9f3f31", _READ),
        Source(_CIVO, "README.md", "v0.1.9", _READ),
    ),
    marks=("kubernetes.civo.com/",),
    schemes=("civo",),
    switches=(
        HeaderSwitch(
            "kubernetes.civo.com/loadbalancer-enable-proxy-protocol",
            a_mode("send-proxy", "send-proxy-v2"),
            "send-proxy",
        ),
    ),
    writes_no_ip_mode=True,
    note="from v0.0.6 it removes the ip from the status by itself if PROXY is on",
    unverified="what Civo's API makes of other values than `send-proxy` and `send-proxy-v2`",
)
_UPCLOUD: Final = "UpCloudLtd/upcloud-cloud-controller-manager"
UPCLOUD: Final = Provider(
    "UpCloud",
    sources=(
        Source(_UPCLOUD, "internal/loadbalancer/utils.go", "v1.2.3", _READ),
        Source(_UPCLOUD, "internal/loadbalancer/loadbalancer.go", "v1.2.3", _READ),
        Source(_UPCLOUD, "README.md", "v1.2.3", _READ),
    ),
    marks=(f"{_BETA}upcloud-load-balancer-",),
    schemes=("upcloud",),
    switches=(
        HeaderSwitch(
            f"{_BETA}upcloud-load-balancer-config",
            upcloud_config,
            on="",
            part='`"outbound_proxy_protocol": "v1"` in the properties of the backend of each port',
        ),
    ),
    writes_no_ip_mode=True,
    note="its status has a hostname by itself, and no address",
)
_EXOSCALE: Final = "exoscale/exoscale-cloud-controller-manager"
EXOSCALE: Final = Provider(
    "Exoscale",
    sources=(Source(_EXOSCALE, "exoscale/loadbalancer.go", "32c9584f5722", _READ),),
    marks=(f"{_BETA}exoscale-loadbalancer-",),
    schemes=("exoscale",),
    never_sends=True,
    writes_no_ip_mode=True,
    note="its load balancers preserve the client's address with externalTrafficPolicy: Local, and have no PROXY header",
)
