"""The status page."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from sidecar.admin.page.document import Level, as_levels
from sidecar.admin.page.history import History
from sidecar.kubernetes.errors import ServerTrouble
from sidecar.kubernetes.follower_status import FollowerState, FollowerStatus
from tests.wholeip.agent.test_status import MAPPING, status
from wholeip.agent.page import CHARTS, SHOWN, agent_facts, read_counters, render_page
from wholeip.agent.status import AgentStatus
from wholeip.mappings.plan import Part, Plan
from wholeip.mappings.reports import Reason, Report


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.data = ""
        self.live: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.live |= {value for name, value in attrs if name == "data-live" and value}

    def handle_data(self, data: str) -> None:
        self.data += data


def page(of: AgentStatus) -> Tags:
    return Tags(render_page(of, History(CHARTS)))


def test_mappings_and_reports_are_on_the_page() -> None:
    text = page(status(repaired=4, advice=("set net.ipv4.ip_forward=1",))).data
    for part in (
        *("Node n1", "in step, with a problem", "default/vm", "192.0.2.1", "10.0.0.1", "set net.ipv4.ip_forward=1"),
        *("80/tcp 53/udp icmp", "elsewhere", "no-endpoint", "no pod is ready", "Changes of other programs undone"),
    ):
        assert part in text


def test_its_state_says_how_it_is() -> None:
    def state(of: AgentStatus) -> tuple[str, str]:
        return as_levels(agent_facts(of))["state"]

    assert state(status()) == ("the kernel has what the cluster asks for", Level.OK)
    assert state(status(stopping=True)) == ("stopping", Level.BAD)
    away = FollowerStatus("Service", FollowerState.RETRYING, ServerTrouble("503"), synced=True)
    assert state(status(watches=(away,)))[1] == Level.WARN
    assert "stopping" in page(status(stopping=True)).data


def test_what_the_script_brings_up_to_date_is_on_the_page() -> None:
    one = status(repaired=1)
    assert page(one).live >= set(as_levels(agent_facts(one)))


def test_a_reading_has_what_the_charts_show() -> None:
    history = History(CHARTS)
    history.take(1.0, read_counters(status()))
    history.take(3.0, read_counters(status()))
    assert "Transactions" in Tags(render_page(status(), history)).data


@given(st.text(max_size=30))
def test_no_text_of_the_cluster_becomes_markup(text: str) -> None:
    plain, odd = (
        page(status(node=one, advice=(one,), plan=Plan({one: Part(reports=(Report(one, Reason.HOSTNAME, one),))})))
        for one in ("x", text)
    )
    if text:
        assert plain.tags == odd.tags


def test_a_long_table_is_cut_and_says_so() -> None:
    text = page(status(plan=Plan({"default/vm": Part((MAPPING,) * (SHOWN + 3))}))).data
    assert text.count("192.0.2.1") == SHOWN
    assert "3 more;" in text
