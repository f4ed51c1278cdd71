"""The readiness, metrics and page of a publisher."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from dnsproxy.publish.publisher_status import PublishCollector, PublishStatus, format_page


def status(**changes: object) -> PublishStatus:
    one = PublishStatus("dnsproxy-admin:8081", "/etc/hosts")
    for name, value in changes.items():
        setattr(one, name, value)
    return one


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({}, "nothing is published yet", id="at the start"),
        pytest.param({"source_trouble": "away"}, "away", id="no table yet"),
        pytest.param({"held_back": "doubt", "source_trouble": "away"}, "doubt", id="a doubtful first table"),
        pytest.param({"published_time": 1.0}, "", id="published"),
        pytest.param({"published_time": 1.0, "source_trouble": "away"}, "", id="published, then no table"),
        pytest.param({"published_time": 1.0, "held_back": "doubt"}, "", id="published, then held back"),
        pytest.param({"published_time": 1.0, "target_trouble": "full"}, "full", id="published, then not"),
    ],
)
def test_it_is_ready_while_what_it_published_stands(changes: dict[str, object], reason: str) -> None:
    assert status(**changes).why_not_ready() == reason


def test_metrics_count_and_name_no_name() -> None:
    one = status(names=3, excluded={"wildcard": 2}, published_time=12.5, held_back="doubt", objects=4, conflicts=1)
    one.reads["changed"] += 1
    registry = CollectorRegistry()
    registry.register(PublishCollector(one))
    lines = generate_latest(registry).decode().splitlines()
    assert {
        'dnsproxy_publish_looks_total{result="changed"} 1.0',
        'dnsproxy_publish_looks_total{result="unchanged"} 0.0',
        'dnsproxy_publish_writes_total{result="failed"} 0.0',
        "dnsproxy_publish_names 3.0",
        "dnsproxy_publish_objects 4.0",
        "dnsproxy_publish_conflicts 1.0",
        "dnsproxy_publish_held_back 1.0",
        'dnsproxy_publish_left_out_names{reason="wildcard"} 2.0',
        "dnsproxy_publish_synced_timestamp_seconds 12.5",
    } <= set(lines)


def test_the_page_escapes_what_comes_from_outside() -> None:
    page = format_page(status(source_trouble="<script>", notes=("a & b",), objects=7, excluded={"wildcard": 1}))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "a &amp; b" in page
    assert ">7</span>" in page
