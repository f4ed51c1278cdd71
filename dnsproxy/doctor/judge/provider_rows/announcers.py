"""Rows of programs in the cluster that give addresses to Services and announce them to the network.

The law: as provider.py says. They carry packets as they are, so none can add a header.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from dnsproxy.doctor.judge.provider import Provider, Source

_READ: Final = date(2026, 11, 22)

METALLB: Final = Provider(
    "MetalLB",
    sources=(Source("metallb/metallb", "controller/service.go", "v0.16.1", _READ),),
    marks=("metallb.universe.tf/", "metallb.io/"),
    classes=("metallb",),
    never_sends=True,
    passes_packets=True,
    writes_no_ip_mode=True,
    note="it cannot send the PROXY header, which comes from a proxy in front of it",
)
KUBE_VIP: Final = Provider(
    "kube-vip",
    sources=(Source("kube-vip/kube-vip", "pkg/services/services.go", "bee5cfe4a249", _READ),),
    marks=("kube-vip.io/",),
    classes=("kube-vip.io/",),
    never_sends=True,
    passes_packets=True,
    writes_no_ip_mode=True,
    note=METALLB.note,
)
CILIUM_LB: Final = Provider(
    "Cilium LB-IPAM",
    sources=(
        Source("cilium/cilium", "pkg/annotation/k8s.go", "023375f62e6d", _READ),
        Source("cilium/cilium", "operator/pkg/lbipam/lbipam.go", "8e4eb47c1740", _READ),
    ),
    marks=("io.cilium/lb-ipam", "lbipam.cilium.io/"),
    classes=("io.cilium/",),
    never_sends=True,
    passes_packets=True,
    writes_no_ip_mode=True,
    note=f"{METALLB.note}; if Cilium itself announces the address, `ipMode: Proxy` would make it unreachable",
    unverified="whether a Cilium newer than these files sets `ipMode`",
)
