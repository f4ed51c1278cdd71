"""The comparison with a dnsproxy that answers on loopback. Its refusals and notes are tested through the commands."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import pytest
from trio.testing import MockClock

from dnsproxy.answers.decide import Answer, decide
from dnsproxy.answers.table import HostTable
from dnsproxy.cluster_dns.method_choice import choose_method
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.dns import probe
from dnsproxy.install.change.config_map import Wanted
from dnsproxy.install.change.planning import plan_apply
from dnsproxy.install.run.applying import Planned
from dnsproxy.install.run.upstream_comparison import compare_upstreams
from tests.dnsproxy.install.run.test_applying import install_request
from tests.kit import upstream_replies
from tests.kit.faulty_upstream import FaultyUpstream, Script, faulty_upstream, silence
from tests.kit.manifest_cluster import discover, manifests


def reporting(*forwards: str, times: int = 2) -> Script:
    """A dnsproxy that reports where it forwards: each text so many times, and the last one from then on."""
    reports = [one for one in forwards for _ in range(times)]

    def answer(asked: bytes) -> list[bytes]:
        if probe.LABEL.encode() not in asked:
            return [upstream_replies.right(asked)]
        row = probe.make_row(reports.pop(0) if len(reports) > 1 else reports[0])
        outcome = decide(asked, HostTable(), stream=False, probe_row=row)
        assert isinstance(outcome, Answer)
        return [outcome.message]

    return answer


def planned(server: FaultyUpstream) -> Planned:
    found = discover(manifests("kubeadm"))
    choice, wanted = choose_method(found), Wanted((server.endpoint,))
    return Planned(found, choice, plan_apply(found, choice, wanted), wanted)


async def test_a_dnsproxy_that_is_about_to_follow_a_changed_corefile_is_not_refused(clock: MockClock) -> None:
    async with faulty_upstream(reporting(". 192.0.2.1", ". /etc/resolv.conf"), silence) as server:
        assert await compare_upstreams(planned(server), install_request()) == ""


async def test_a_difference_that_lasts_is_refused(clock: MockClock) -> None:
    async with faulty_upstream(reporting(". 192.0.2.1"), silence) as server:
        with pytest.raises(ChangeRefused, match=r"forwards them to 192\.0\.2\.1.*--accept-upstreams"):
            await compare_upstreams(planned(server), install_request())
