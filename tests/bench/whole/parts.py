"""The parts of `make bench`, in the order of the page.

The law: a benchmark is a row here and a page_rows.py beside it; its cost is what it took on two quiet processors.
"""

from __future__ import annotations

from typing import Final

from tests.bench.dns import page_rows as dns
from tests.bench.doctor import page_rows as doctor
from tests.bench.faults import page_rows as faults
from tests.bench.fleet import page_rows as fleet
from tests.bench.memory import page_rows as memory
from tests.bench.relay import page_rows as relay
from tests.bench.sync import page_rows as sync
from tests.bench.whole.part import Part
from tests.bench.whole.plan import Cost
from tests.bench.wholeip import page_rows as wholeip
from tests.bench.wholeip_events import page_rows as wholeip_events


def _options(name: str, *values: str) -> list[str]:
    return [word for value in values for word in (name, value)]


PARTS: Final = (
    Part(
        "dns",
        "tests.bench.dns",
        "DNS answers",
        "dnsproxy serve beside other servers with the same names, asked by dnsperf; the server has one processor.",
        dns.make_page_rows,
        Cost(100, 140, least=2),
        arguments=(
            "--seconds",
            "2",
            *_options(
                "--workload", "table", "edns", "wildcard", "100k", "tap", "two", "forward", "rest-1000", "rest-100"
            ),
        ),
        quick=("--seconds", "0.3"),
        needs=("dnsperf", "nsd"),
    ),
    Part(
        "relay",
        "tests.bench.relay",
        "Relay",
        "proxy beside other relays that add the PROXY header, in front of one nginx; the relay has one processor.",
        relay.make_page_rows,
        Cost(70, 100, least=2),
        arguments=(
            *("--seconds", "2"),
            *_options("--workload", "download", "upload", "new", "keep-alive", "latency", "latency-new", "idle"),
        ),
        quick=("--seconds", "0.3"),
        needs=("nginx", "wrk"),
    ),
    Part(
        "faults",
        "tests.bench.faults",
        "Faults",
        "Lookups through a real CoreDNS with Switchback's stanza, while dnsproxy is killed, hangs or is cut off.",
        faults.make_page_rows,
        Cost(0, 51, most=2),
        arguments=("--coredns", "newest", "--seconds", "6", *_options("--fault", "killed", "hung", "black hole")),
        quick=("--fault", "killed", "--seconds", "1"),
        needs=("coredns", "nsd"),
    ),
    Part(
        "sync",
        "tests.bench.sync",
        "Many Ingresses",
        "dnsproxy serve on a real API server with 10,000 Ingresses.",
        sync.make_page_rows,
        Cost(25, 30, most=3),
        arguments=(
            *("--size", "10000", "--seconds", "5", "--tries", "2"),
            *_options("--measure", "start", "answers", "creations", "changes", "informer"),
        ),
        quick=("--seconds", "0.5", "--tries", "1"),
        needs=("etcd", "kube-apiserver"),
        faults=sync.find_faults,
    ),
    Part(
        "sync-100k",
        "tests.bench.sync",
        "100,000 Ingresses",
        "The same with ten times the objects.",
        sync.make_page_rows,
        Cost(95, 16, most=3),
        arguments=("--size", "100000", "--measure", "start", "--tries", "2"),
        quick=("--tries", "1"),
        needs=("etcd", "kube-apiserver"),
        faults=sync.find_faults,
    ),
    Part(
        "doctor",
        "tests.bench.doctor",
        "Doctor and status",
        "Commands on a real API server with a big cluster, by a kubeconfig as on a laptop or a token as in a pod.",
        doctor.make_page_rows,
        Cost(55, 25, most=3),
        arguments=_options("--command", "status", "host", "install", "explain"),
        quick=("--ingresses", "100", "--services", "20", "--nodes", "5"),
        needs=("etcd", "kube-apiserver"),
    ),
    Part(
        "memory",
        "tests.bench.memory",
        "At rest",
        "The programs with one name, route or Service: their memory at rest, and what starting them takes.",
        memory.make_page_rows,
        Cost(5, 11, most=5),
        quick=("--rest", "0"),
    ),
    Part(
        "wholeip",
        "tests.bench.wholeip",
        "Whole addresses: traffic",
        "The rules of wholeip between a client, a node and a pod, beside other rules on the same node.",
        wholeip.make_page_rows,
        Cost(50, 30, most=5),
        arguments=(
            *("--part", "traffic", "--part", "applying", "--part", "resync"),
            *("--changes", "20", "--meanwhile", "100"),
        ),
        quick=("--seconds", "1", "--changes", "2", "--meanwhile", "5"),
        needs=("nft", "ip", "iperf3", "conntrack"),
        root=True,
    ),
    Part(
        "wholeip-events",
        "tests.bench.wholeip_events",
        "Whole addresses: changes",
        "From an event of a real API server to the rule in the kernel of a node.",
        wholeip_events.make_page_rows,
        Cost(25, 0, most=1),
        arguments=("--changes", "200"),
        quick=("--services", "20", "--changes", "5"),
        rounds="",
        needs=("nft", "ip", "etcd", "kube-apiserver"),
        root=True,
    ),
    Part(
        "fleet",
        "tests.bench.fleet",
        "A fleet of secondaries",
        "A primary whose zone many secondaries transfer, beside BIND and NSD with the same zone.",
        fleet.make_page_rows,
        Cost(20, 75, most=2),
        arguments=(
            "--names",
            "20000",
            "--secondaries",
            "500",
            "--changes",
            "3",
            "--replicas",
            "0",
            *_options("--workload", "one", "change"),
        ),
        quick=("--names", "1000", "--secondaries", "20", "--changes", "1"),
        needs=("ip", "unshare", "etcd", "kube-apiserver"),
        root=True,
    ),
)
