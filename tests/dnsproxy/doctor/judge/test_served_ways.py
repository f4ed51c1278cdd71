"""Hosts that are served: by whom, how well, and what was not checked."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.facts.model import BalancerAddress, Facts, Host, Port
from dnsproxy.doctor.facts.probes import Header, Outcome, Probe, ServiceIdentity
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import Severity
from dnsproxy.doctor.judge.served_ways import NOT_CHECKED
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    BALANCER,
    CONTROLLER,
    HOST,
    HOSTNAME,
    PROXY_MODE,
    answering,
    bad,
    facts,
    ids,
    named,
    service,
)

OTHER = "198.51.100.20"
MISMATCH = ServiceIdentity("hostname mismatch", ("ingress.local",), "2030-01-01T00:00:00Z")
FITTING = ServiceIdentity("", (HOST,), "2030-01-01T00:00:00Z")


def at(address: str, *, status: int = 200, port: int = 80, identity: ServiceIdentity | None = None) -> Probe:
    """An answered bare connection."""
    tls = port == 443
    return Probe(address, port, HOST, tls, Header.PLAIN, Outcome.ANSWERED, f"{status} words", status, identity)


def rejecting(*, status: int = 200) -> tuple[Probe, ...]:
    """A controller that takes no header, and answers with a status."""
    headed = (Probe(CONTROLLER, 80, HOST, False, one, Outcome.BAD_REQUEST) for one in (Header.V1, Header.V2))
    return (at(CONTROLLER, status=status), *headed)


def seen_with(*probes: Probe, host: dict[str, Any] | None = None, **fields: Any) -> Facts:
    seen = facts(service(points=PROXY_MODE), probes=(*rejecting(), *probes), **fields)
    return replace(seen, hosts=tuple(replace(one, **host) for one in seen.hosts)) if host else seen


def test_what_was_not_checked_is_said() -> None:
    diagnosis = judge(seen_with(at(BALANCER), hostname=HOST))
    assert diagnosis.status == ExitStatus.DONE
    assert named(diagnosis, "reached").evidence[-1] == NOT_CHECKED
    assert diagnosis.path[-1] == NOT_CHECKED
    assert f"{BALANCER}:80 (HTTP): plain answered (200 words)" in diagnosis.path


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_error_of_the_server_is_a_warning_for_who_asks_about_the_host(status: int) -> None:
    asked = judge(seen_with(at(BALANCER, status=status), hostname=HOST))
    assert bad(asked) == {"server-error"}
    assert f"{status} words" in named(asked, "server-error").text
    assert "kubectl -n web get endpointslices,pods" in named(asked, "server-error").steps[0].lines
    whole = judge(seen_with(at(BALANCER, status=status)))
    assert named(whole, "server-error").severity is Severity.INFO
    assert whole.status == ExitStatus.DONE


@pytest.mark.parametrize("status", [200, 204, 301, 308, 401, 403, 404])
def test_other_statuses_are_answers(status: int) -> None:
    assert bad(judge(seen_with(at(BALANCER, status=status), hostname=HOST))) == set()


@pytest.mark.parametrize(
    ("host", "hostname", "severity"),
    [({"tls": True}, HOST, Severity.WARNING), ({"tls": True}, "", Severity.INFO), ({}, HOST, Severity.INFO)],
    ids=["asked, with TLS", "all hosts", "no TLS of its own"],
)
def test_a_certificate_that_does_not_fit_is_shown_with_its_names(
    host: dict[str, Any], hostname: str, severity: Severity
) -> None:
    probes = (at(BALANCER), at(BALANCER, port=443, identity=MISMATCH))
    finding = named(judge(seen_with(*probes, host=host, hostname=hostname)), "certificate-unfit")
    assert finding.severity is severity
    assert "hostname mismatch; it names ingress.local" in finding.text


@pytest.mark.parametrize("identity", [FITTING, None], ids=["fitting", "not seen"])
def test_no_other_certificate_is_a_finding(identity: ServiceIdentity | None) -> None:
    probes = (at(BALANCER), at(BALANCER, port=443, identity=identity))
    assert bad(judge(seen_with(*probes, host={"tls": True}, hostname=HOST))) == set()


ANOTHER = service(key="web/another", points=(BalancerAddress(ip=OTHER),), cluster_ips=(), ports=(Port(80, "http"),))


@pytest.mark.parametrize(
    ("here", "there", "services", "wrong"),
    [
        (308, 404, (ANOTHER,), {"wrong-server"}),
        (200, 503, (ANOTHER,), {"wrong-server", "server-error"}),
        (404, 404, (ANOTHER,), set()),
        (308, 404, (), {"wrong-server"}),
        (308, 421, (), {"wrong-server"}),
        (308, 200, (), set()),
        (308, 403, (), set()),
        (404, 404, (), set()),
    ],
    ids=["another controller, not found", "another controller, no backend", "another controller, alike",
         "a server outside, not found", "a server outside, misdirected", "a CDN that answers itself",
         "a CDN that refuses robots", "not found at both"],
)  # fmt: skip
def test_a_server_that_answers_otherwise_than_the_controller_is_the_wrong_one(
    here: int, there: int, services: tuple[Any, ...], wrong: set[str]
) -> None:
    one = service(points=PROXY_MODE)
    probes = (*rejecting(status=here), at(OTHER, status=there), at(BALANCER, status=here))
    seen = facts(one, services=(one, *services), probes=probes, lookups=(answering(OTHER),))
    assert bad(judge(replace(seen, hostname=HOST))) == wrong
    assert ("reached" in ids(judge(seen))) is not bool(wrong)


@pytest.mark.parametrize(("here", "there"), [(200, 308), (404, 200), (200, 403)])
def test_another_service_of_the_cluster_that_answers_otherwise_may_stand_in_front(here: int, there: int) -> None:
    one = service(points=PROXY_MODE)
    probes = (*rejecting(status=here), at(OTHER, status=there), at(BALANCER, status=here))
    diagnosis = judge(facts(one, services=(one, ANOTHER), probes=probes, lookups=(answering(OTHER),)))
    assert (bad(diagnosis), diagnosis.status) == (set(), ExitStatus.UNKNOWN)
    assert "Service web/another" in diagnosis.unseen[0].why


REFUSES = replace(at(OTHER, port=443), outcome=Outcome.ALERT, status=0, detail="TLSV1_UNRECOGNIZED_NAME")


def test_a_server_that_refuses_the_handshake_which_the_controller_finishes_is_the_wrong_one() -> None:
    probes = (at(CONTROLLER, port=443), at(BALANCER), at(OTHER, status=308), REFUSES)
    seen = seen_with(*probes, host={"tls": True})
    assert bad(judge(replace(seen, lookups=(answering(OTHER),)))) == {"wrong-server"}


@pytest.mark.parametrize(("tls", "status"), [(True, ExitStatus.UNKNOWN), (False, ExitStatus.DONE)])
def test_nobody_was_seen_to_be_served_where_every_handshake_is_refused(tls: bool, status: ExitStatus) -> None:
    refused = (replace(REFUSES, address=CONTROLLER), replace(REFUSES, address=BALANCER))
    diagnosis = judge(seen_with(at(BALANCER), *refused, host={"tls": tls}))
    assert (bad(diagnosis), diagnosis.status) == (set(), status)
    assert ("reached" in ids(diagnosis)) is not tls
    assert ("not-needed" in ids(diagnosis)) is not tls


def test_the_load_balancer_that_the_status_names_is_never_the_wrong_server() -> None:
    lookups = (answering(OTHER), answering(OTHER, hostname="lb.example.org"))
    seen = facts(service(points=HOSTNAME), probes=(*rejecting(status=308), at(OTHER, status=404)), lookups=lookups)
    assert bad(judge(seen)) == set()
    assert "is in the status of none" not in named(judge(seen), "reached").text


def test_an_address_of_no_status_is_named_as_such() -> None:
    seen = seen_with(at(OTHER), lookups=(answering(OTHER),))
    assert f"{OTHER} is in the status of none of its Services" in named(judge(seen), "reached").text


def test_harmless_is_said_only_of_a_short_circuited_address_that_was_answered() -> None:
    short = facts(probes=(*rejecting(), at(BALANCER)))
    assert "short-circuit-harmless" in ids(judge(short))
    for unseen in (
        replace(short, probes=rejecting()),
        replace(short, probes=()),
        replace(short, lookups=()),
        replace(short, probed=False, probes=(), lookups=()),
    ):
        diagnosis = judge(unseen)
        assert not ids(diagnosis) & {"short-circuit-harmless", "reached", "not-needed"}
        assert diagnosis.status == ExitStatus.UNKNOWN


def test_hosts_without_a_service_are_served_all_the_same() -> None:
    lone = Host(HOST, "Ingress web/shop", "nginx", (OTHER,))
    seen = facts(hosts=(lone,), services=(), probes=(at(OTHER),), lookups=(answering(OTHER),))
    diagnosis = judge(seen)
    assert {"reached", "no-road"} <= ids(diagnosis)
    assert diagnosis.status == ExitStatus.DONE
