"""The check of forwarding, with servers on loopback that answer, fail or are silent."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from trio.testing import MockClock

from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.dns.wire import Rcode
from dnsproxy.install.run.forwarding_check import check_forwarding
from dnsproxy.install.run.upstream_comparison import compare_upstreams
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.install.run.test_applying import install_request
from tests.dnsproxy.install.run.test_upstream_comparison import planned, reporting
from tests.kit import upstream_replies
from tests.kit.coredns import running_coredns
from tests.kit.faulty_upstream import Script, Step, faulty_upstream, silence
from tests.kit.ports import free_port
from tests.kit.serve_process import serving


def replying(*rcodes: int) -> Script:
    """Each response code once, and the last one from then on."""
    left = list(rcodes)

    def answer(asked: bytes) -> Iterable[Step]:
        rcode = left.pop(0) if len(left) > 1 else left[0]
        return [upstream_replies.right(asked, rcode=rcode, answers=0)]

    return answer


async def checked(own: Script, other: Script, *zones: str) -> str:
    async with faulty_upstream(own, silence) as dnsproxy, faulty_upstream(other, silence) as cluster_dns:
        return await check_forwarding(zones or (".",), (dnsproxy.endpoint,), (cluster_dns.endpoint,))


ANSWERING = ". {\n template ANY ANY . {\n  rcode NXDOMAIN\n }\n}\n"
SERVFAIL = replying(Rcode.SERVFAIL)
REFUSED = replying(Rcode.REFUSED)
NOERROR = replying(Rcode.NOERROR)
NXDOMAIN = replying(Rcode.NXDOMAIN)


@pytest.mark.parametrize(
    ("own", "other"),
    [
        pytest.param(NOERROR, NOERROR, id="both-answer"),
        pytest.param(NXDOMAIN, NOERROR, id="an-answer-is-not-judged"),
        pytest.param(SERVFAIL, SERVFAIL, id="both-fail"),
        pytest.param(SERVFAIL, REFUSED, id="both-fail-differently"),
        pytest.param(SERVFAIL, silence, id="nobody-to-compare-with"),
        pytest.param(silence, NOERROR, id="a-dnsproxy-that-has-no-route-from-here"),
        pytest.param(replying(*[Rcode.SERVFAIL] * 3, Rcode.NOERROR), NOERROR, id="a-failure-that-passes"),
    ],
)
async def test_what_is_no_worse_than_before_is_no_fault(own: Script, other: Script, clock: MockClock) -> None:
    assert await checked(own, other) == ""


@pytest.mark.parametrize("own", [SERVFAIL, REFUSED], ids=["SERVFAIL", "REFUSED"])
@pytest.mark.parametrize("other", [NOERROR, NXDOMAIN], ids=["NOERROR", "NXDOMAIN"])
async def test_a_failure_of_dnsproxy_alone_that_lasts_is_one(own: Script, other: Script, clock: MockClock) -> None:
    fault = await checked(own, other, "example.org", "example.net")
    assert "has no answer for example.org (SOA: " in fault


async def test_one_replica_of_three_without_upstreams_is_enough(clock: MockClock) -> None:
    turns = iter(range(1_000_000))

    def one_in_three(asked: bytes) -> Iterable[Step]:
        return SERVFAIL(asked) if next(turns) % 3 == 0 else NOERROR(asked)

    assert "SERVFAIL" in await checked(one_in_three, NOERROR)


@pytest.mark.peer("coredns")
async def test_a_real_dnsproxy_that_reaches_no_upstream_is_not_installed_before_a_real_coredns(tmp_path: Path) -> None:
    with (
        running_coredns(tmp_path, ANSWERING) as coredns,
        serving(tmp_path, "--upstream", f"127.0.0.1:{free_port()}") as own,
    ):
        fault = await check_forwarding((".",), (own.endpoint,), (Endpoint("127.0.0.1", coredns.port),))
        assert "dnsproxy's pods do not reach the upstreams" in fault


async def test_an_install_is_refused_unless_the_user_accepts_it(clock: MockClock) -> None:
    def own(asked: bytes) -> Iterable[Step]:
        return reporting(". /etc/resolv.conf")(asked) if b"probe" in asked else SERVFAIL(asked)

    async with faulty_upstream(own, silence) as dnsproxy, faulty_upstream(NOERROR, silence) as cluster_dns:
        dns = cluster_dns.endpoint
        with pytest.raises(ChangeRefused, match=r"SERVFAIL.*NetworkPolicy.*--accept-upstreams"):
            await compare_upstreams(planned(dnsproxy), install_request(), dns=dns)
        accepting = install_request(accepts_upstreams=True)
        assert await compare_upstreams(planned(dnsproxy), accepting, dns=dns) == ""
