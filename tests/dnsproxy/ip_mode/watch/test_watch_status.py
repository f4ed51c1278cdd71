"""The status of a watch: readiness, metrics and page."""

from __future__ import annotations

from collections import Counter

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.ip_mode.watch.observed import Observed
from dnsproxy.ip_mode.watch.plan import Standing, WatchState
from dnsproxy.ip_mode.watch.watch_status import IpModeCollector, ServiceStatus, format_page, why_not_ready
from sidecar.kubernetes.errors import Forbidden, ServerTrouble
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.structs.network import LoadBalancerPoint

ENTRIES = (LoadBalancerPoint("192.0.2.1", ip_mode="Proxy"), LoadBalancerPoint("192.0.2.2", ip_mode="VIP"))


def status(standing: Standing = Standing.IN_PLACE, why: str = "", *, synced: bool = True) -> ServiceStatus:
    state = WatchState(standing, why, seen=Observed("u", "7", ENTRIES, "<b>cloud</b>"), writes=3, undone=2)
    errors = Counter({"forbidden": 4})
    return ServiceStatus(ObjectRef("web", "front"), state, FollowerStatus(synced=synced), errors, 12.5)


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        pytest.param(status(), "", id="in place"),
        pytest.param(status(Standing.WAITING, "it does not exist"), "", id="nothing to write"),
        pytest.param(status(Standing.WRITING), "", id="being written"),
        pytest.param(status(Standing.UNDONE, "undone by a"), "web/front: undone: undone by a", id="undone"),
        pytest.param(status(Standing.REFUSED, "MetalLB"), "web/front: refused: MetalLB", id="refused"),
        pytest.param(status(Standing.NOT_KEPT, "too old"), "web/front: not-kept: too old", id="not kept"),
        pytest.param(status(Standing.FAILED, "403"), "web/front: failed: 403", id="failed"),
        pytest.param(status(Standing.STARTING, synced=False), "web/front: not read yet: syncing", id="not read"),
    ],
)
def test_it_is_ready_unless_ip_mode_is_missing_where_it_should_be(one: ServiceStatus, reason: str) -> None:
    assert one.why_not_ready() == reason


def test_every_service_that_is_not_ready_is_named() -> None:
    assert why_not_ready([status(), status()]) == ""
    assert (
        why_not_ready([status(Standing.FAILED, "a"), status(), status(Standing.REFUSED, "b")]).count("web/front") == 2
    )


def test_a_right_that_is_missing_is_named() -> None:
    one = status(synced=False)
    one.follower.error = Forbidden("403: services is forbidden")
    assert "list and watch on services, resourceNames front, in web are missing" in one.why_not_ready()


def test_an_api_server_that_goes_away_changes_nothing() -> None:
    one = status()
    one.follower.error = ServerTrouble("away")
    assert one.why_not_ready() == ""
    assert "the last state counts: " in format_page([one])


def test_metrics_count_and_name_no_name() -> None:
    registry = CollectorRegistry()
    registry.register(IpModeCollector([status(), status(Standing.UNDONE, "undone by secret")]))
    text = generate_latest(registry).decode()
    assert "secret" not in text
    assert "front" not in text
    assert {
        "dnsproxy_ip_mode_writes_total 6.0",
        "dnsproxy_ip_mode_undone_total 4.0",
        'dnsproxy_ip_mode_errors_total{cause="forbidden"} 8.0',
        "dnsproxy_ip_mode_error_timestamp_seconds 12.5",
        'dnsproxy_ip_mode_entries{mode="Proxy"} 2.0',
        'dnsproxy_ip_mode_entries{mode="VIP"} 2.0',
        'dnsproxy_ip_mode_entries{mode="none"} 0.0',
        'dnsproxy_ip_mode_services{state="undone"} 1.0',
        'dnsproxy_ip_mode_services{state="in-place"} 1.0',
    } <= set(text.splitlines())


def test_the_page_escapes_what_comes_from_outside() -> None:
    page = format_page([status(Standing.FAILED, "<script>alert</script>")])
    assert "<script>alert" not in page
    assert "<b>cloud</b>" not in page
    assert "&lt;b&gt;cloud" in page
