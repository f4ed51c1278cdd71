"""The metrics of an agent, as a scraper reads them."""

from __future__ import annotations

from collections import Counter

from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sidecar.admin.port import make_registry
from sidecar.kubernetes.follower_status import FollowerStatus
from tests.wholeip.agent.test_status import MAPPING, status
from wholeip.agent.metrics import AgentCollector
from wholeip.agent.page import agent_facts, read_counters
from wholeip.agent.status import DURATION_BOUNDS, AgentStatus
from wholeip.mappings.plan import Part, Plan
from wholeip.mappings.reports import NOTES, Reason, Report


def scraped(of: AgentStatus) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = generate_latest(make_registry(AgentCollector(of))).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("wholeip_")
    }


def value(of: AgentStatus, name: str, **labels: str) -> float:
    return scraped(of)[name, frozenset(labels.items())]


def test_an_agent_that_has_done_nothing_has_all_its_metrics_at_nought() -> None:
    found = scraped(AgentStatus())
    assert set(found.values()) == {0.0}
    assert {name for name, _ in found} >= {"wholeip_mappings", "wholeip_drift_repaired_total", "wholeip_in_step"}
    reasons = {dict(labels)["reason"] for name, labels in found if name == "wholeip_services_skipped"}
    assert reasons == {str(one) for one in Reason if one not in NOTES}


def test_nothing_is_sorted_for_a_scrape_or_a_probe() -> None:
    """Each change makes a new plan, which may have thousands of mappings."""
    one = status(plan=Plan(status().plan.parts))
    scraped(one)
    assert one.describe().startswith("1 mappings")
    read_counters(one)
    list(agent_facts(one))
    assert vars(one.plan).keys() == {"parts"}


def test_each_figure_has_its_metric() -> None:
    one = status(repaired=3, flows_ended=7, flow_failures=2, applied_time=1_700_000_000.0)
    one.attempts["applied"] = 5
    one.attempts["failed"] = 1
    one.durations.add(0.02)
    one.durations.add(3.0)
    assert value(one, "wholeip_services") == 2
    assert value(one, "wholeip_mappings") == 1
    assert value(one, "wholeip_in_step") == 1
    assert value(one, "wholeip_services_skipped", reason="no-endpoint") == 1
    assert value(one, "wholeip_apply_total", result="applied") == 5
    assert value(one, "wholeip_apply_total", result="failed") == 1
    assert value(one, "wholeip_drift_repaired_total") == 3
    assert value(one, "wholeip_flows_ended_total") == 7
    assert value(one, "wholeip_flows_errors_total") == 2
    assert value(one, "wholeip_applied_timestamp_seconds") == 1_700_000_000.0
    assert value(one, "wholeip_apply_duration_seconds_bucket", le=str(DURATION_BOUNDS[1])) == 0
    assert value(one, "wholeip_apply_duration_seconds_bucket", le="0.025") == 1
    assert value(one, "wholeip_apply_duration_seconds_bucket", le="+Inf") == 2
    assert value(one, "wholeip_apply_duration_seconds_sum") == 3.02


def test_watches_are_told_by_kind_and_cause() -> None:
    watch = FollowerStatus("Service", synced=True, contact_time=12.0, errors=Counter({"timeout": 2}))
    one = status(watches=(watch,))
    assert value(one, "wholeip_watch_contact_timestamp_seconds", kind="Service") == 12
    assert value(one, "wholeip_watch_errors_total", kind="Service", cause="timeout") == 2


def test_no_label_holds_a_name_or_an_address() -> None:
    plan = Plan({"secret/name": Part((MAPPING,), (Report("secret/name", Reason.HOSTNAME, "lb.example.org"),))})
    text = generate_latest(make_registry(AgentCollector(status(plan=plan)))).decode()
    for private in ("secret", "name}", "example.org", "192.0.2.1", "10.0.0.1", "default/vm"):
        assert private not in text
