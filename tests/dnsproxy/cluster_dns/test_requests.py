from __future__ import annotations

from dnsproxy.cluster_dns.requests import (
    CONFIG_MAP,
    DEPLOYMENT,
    MAXIMUM_REQUESTS,
    SERVICE,
    Blame,
    Denied,
    Fault,
    Missing,
    Request,
    Requests,
    Unreadable,
)
from sidecar.kubernetes.structs.metadata import Metadata
from sidecar.kubernetes.structs.workload import ConfigMap

COREDNS = Request(CONFIG_MAP, "kube-system", "coredns")


def test_a_request_says_where_the_api_has_it_and_what_rbac_must_allow() -> None:
    everything = Request(DEPLOYMENT, "kube-system")
    assert (COREDNS.path, COREDNS.verb) == ("/api/v1/namespaces/kube-system/configmaps/coredns", "get")
    assert (everything.path, everything.verb) == ("/apis/apps/v1/namespaces/kube-system/deployments", "list")
    assert str(COREDNS) == "get configmaps coredns in namespace kube-system"
    assert str(everything) == "list deployments.apps in namespace kube-system"


def test_an_unread_object_is_wanted_once() -> None:
    requests = Requests({})
    assert requests.get(CONFIG_MAP, "kube-system", "coredns") is Missing.UNSEEN
    assert requests.get(CONFIG_MAP, "kube-system", "coredns") is Missing.UNSEEN
    assert requests.list(SERVICE, "a", label_selector="b=c") is Missing.UNSEEN
    assert requests.wanted == (COREDNS, Request(SERVICE, "a", label_selector="b=c"))
    assert not requests.faults


def test_an_object_that_was_read_is_returned_and_not_wanted() -> None:
    there = ConfigMap(Metadata("coredns"))
    requests = Requests({COREDNS: there, Request(DEPLOYMENT, "kube-system"): ()})
    assert requests.get(CONFIG_MAP, "kube-system", "coredns") is there
    assert requests.list(DEPLOYMENT, "kube-system") == ()
    assert requests.wanted == ()
    assert tuple(requests.asked) == (COREDNS, Request(DEPLOYMENT, "kube-system"))


def test_a_missing_object_is_absent_and_a_refusal_is_a_fault() -> None:
    denied = Request(DEPLOYMENT, "kube-system")
    garbled = Request(SERVICE, "kube-system", "kube-dns")
    answers = {COREDNS: None, denied: Denied("no role"), garbled: Unreadable("Expected `str`")}
    requests = Requests(answers)
    assert requests.get(CONFIG_MAP, "kube-system", "coredns") is Missing.ABSENT
    assert requests.list(DEPLOYMENT, "kube-system") is Missing.UNSEEN
    assert requests.get(SERVICE, "kube-system", "kube-dns") is Missing.UNSEEN
    assert list(map(str, requests.faults)) == [
        "not allowed to list deployments.apps in namespace kube-system; grant list on it: no role",
        "the answer to get services kube-dns in namespace kube-system is unreadable: Expected `str`",
    ]


def test_the_number_of_requests_is_limited() -> None:
    requests = Requests({})
    for number in range(2 * MAXIMUM_REQUESTS):
        requests.get(CONFIG_MAP, "kube-system", f"c{number}")
    assert len(requests.wanted) == MAXIMUM_REQUESTS
    assert [str(fault) for fault in requests.faults] == [f"more than {MAXIMUM_REQUESTS} objects would have to be read"]


def test_a_fault_repeats_no_long_text_whole() -> None:
    requests = Requests({})
    requests.report(Fault(Blame.CONTENTS, "x" * 200_000, "do that"))
    (fault,) = requests.faults
    assert (len(fault.text) < 1_100, fault.remedy) == (True, "do that")
