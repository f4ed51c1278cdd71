"""The rules of cozy-proxy in the scene, with one whole address: pod a's.

The law: its chains and sets as it makes them (pkg/proxy/nft.go, 0.3.0); a pod with a whole address is in none of the
sets.
"""

from __future__ import annotations

from typing import Final

from tests.wholeip.scene.cluster import address, balanced

_POD: Final = address("a", 4)
_LB: Final = balanced("a", 4)

COZY_PROXY: Final = f"""
table ip cozy_proxy {{
    map pod_svc {{ type ipv4_addr : ipv4_addr; elements = {{ {_POD} : {_LB} }} }}
    map svc_pod {{ type ipv4_addr : ipv4_addr; elements = {{ {_LB} : {_POD} }} }}
    set filtered_pods {{ type ipv4_addr; }}
    set icmp_allowed_pods {{ type ipv4_addr; }}
    set allowed_ports {{ type ipv4_addr . inet_proto . inet_service; }}
    chain egress_snat {{
        type filter hook prerouting priority raw; policy accept;
        ip saddr set ip saddr map @pod_svc
    }}
    chain ingress_dnat {{
        type filter hook prerouting priority mangle; policy accept;
        ip daddr set ip daddr map @svc_pod
    }}
    chain port_filter {{
        type filter hook prerouting priority filter; policy accept;
        ct state established,related accept
        ip daddr @icmp_allowed_pods meta l4proto icmp accept
        ip daddr @filtered_pods ip daddr . meta l4proto . th dport != @allowed_ports drop
    }}
}}
"""
