"""The alerts as Prometheus reads them, each tested firing and silent; they use only metrics of our programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.request import urlopen

import pytest
import yaml

from dnsproxy.install.watch.watcher_status import WatchCollector, WatchStatus
from dnsproxy.ip_mode.watch.plan import Standing
from dnsproxy.ip_mode.watch.watch_status import IpModeCollector
from dnsproxy.operate.report.steering_status import SteeringCollector, SteeringStatus
from tests.deploy.manifests import DEPLOY, Manifest, compose, find, pod_templates, render
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program
from wholeip.agent.metrics import AgentCollector
from wholeip.agent.status import AgentStatus

FOLDER: Final = DEPLOY / "components" / "monitoring"
_METRIC: Final = re.compile(r"\b(?:dnsproxy|proxy|wholeip|process)_[a-z_]+\b")
_SUFFIXES: Final = ("_total", "_bucket", "_sum", "_count")


def groups() -> list[dict[str, Any]]:
    (rule,) = yaml.safe_load_all((FOLDER / "alerts.yaml").read_text())
    found: list[dict[str, Any]] = rule["spec"]["groups"]
    return found


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for group in groups() for rule in group["rules"]}


UP: Final = ['up{job="dnsproxy"} 1x120', 'up{job="relay"} 1x120', 'up{job="operate"} 1x120']
"""Without these series the alerts on absence would fire too."""

CASES: Final[dict[str, tuple[list[str], list[str]]]] = {
    "DnsproxyAbsent": (
        ['up{job="dnsproxy"} 0x120'],
        ['up{job="dnsproxy",pod="a"} 0x120', 'up{job="dnsproxy",pod="b"} 1x120'],
    ),
    "DnsproxyTableStale": (
        ['dnsproxy_source_contact_age_seconds{source="Ingress"} 1000x120'],
        ['dnsproxy_source_contact_age_seconds{source="Ingress"} 300x120'],
    ),
    "DnsproxyTableEmpty": (["dnsproxy_table_names 7x60 0x60"], ["dnsproxy_table_names 0x120"]),
    "DnsproxyTargetNotReady": (
        ['dnsproxy_target_services_unready{pod="a"} 1x120', 'dnsproxy_target_services_unready{pod="b"} 0x120'],
        ['dnsproxy_target_services_unready{pod="a"} 0x50 1 0x60'],
    ),
    "DnsproxyUpstreamUnhealthy": (
        ['dnsproxy_forward_upstream_healthy{upstream="192.0.2.53:53",pod="a"} 0x120'],
        [
            'dnsproxy_forward_upstream_healthy{upstream="192.0.2.53:53",pod="a"} 0x120',
            'dnsproxy_forward_upstream_healthy{upstream="192.0.2.53:53",pod="b"} 1x120',
        ],
    ),
    "DnsproxyUpstreamsNotFollowed": (
        [
            'dnsproxy_forward_upstreams_not_followed{pod="a"} 1x120',
            'dnsproxy_forward_upstreams_not_followed{pod="b"} 0x120',
        ],
        ['dnsproxy_forward_upstreams_not_followed{pod="a"} 0x110 1x10'],
    ),
    "DnsproxyRefusesForLoad": (["dnsproxy_forward_overload_total 0+5x120"], ["dnsproxy_forward_overload_total 5x120"]),
    "DnsproxyFaults": (["dnsproxy_dns_failures_total 0x110 1x10"], ["dnsproxy_dns_failures_total 4x120"]),
    "StanzaNotLoaded": (
        ["dnsproxy_install_loaded 0x120"],
        ['dnsproxy_install_loaded{pod="a"} 0x120', 'dnsproxy_install_loaded{pod="b"} 1x120'],
    ),
    "OperateAbsent": (
        ['up{job="operate",pod="a"} 1x100 0x20'],
        # A pod that was started on another node.
        ['up{job="operate",pod="a"} 1x60 0x60', 'up{job="operate",pod="b"} _x65 1x55'],
    ),
    "OperateWithoutLeader": (
        ['dnsproxy_operate_leads{pod="a"} 0x120', 'dnsproxy_operate_leads{pod="b"} 0x120'],
        ['dnsproxy_operate_leads{pod="a"} 0x120', 'dnsproxy_operate_leads{pod="b"} 1x120'],
    ),
    "OperateUndecided": (
        ['dnsproxy_operate_undecided{pod="a"} 2x120', 'dnsproxy_operate_undecided{pod="b"} 0x120'],
        # A new class whose controller starts.
        ['dnsproxy_operate_undecided{pod="a"} 0x90 1x25 0x5'],
    ),
    "OperateFaults": (
        ['dnsproxy_operate_faults{pod="a"} 1x120', 'dnsproxy_operate_faults{pod="b"} 0x120'],
        ['dnsproxy_operate_faults{pod="a"} 0x95 1x25'],
    ),
    "OperateHandshakesFail": (
        [
            'dnsproxy_operate_handshakes_total{result="failed",pod="a"} 0x90 0+1x30',
            'dnsproxy_operate_handshakes_total{result="succeeded",pod="a"} 0+1x120',
        ],
        [
            # A relay that does not listen yet is tried a few times; and a controller failed once.
            'dnsproxy_operate_handshakes_total{result="failed",pod="a"} 0x100 4x20',
            'dnsproxy_operate_handshakes_total{result="failed",pod="b"} 0x70 1x50',
            'dnsproxy_operate_handshakes_total{result="succeeded",pod="b"} 0+1x120',
        ],
    ),
    "RelayAbsent": (['up{job="relay"} 0x120'], ['up{job="relay"} 1x120']),
    "RelayBackendFails": (
        ['proxy_backend_errors_total{cause="timeout"} 0+6x120', "proxy_connections_total 0+60x120"],
        ['proxy_backend_errors_total{cause="timeout"} 0+1x120', "proxy_connections_total 0+60x120"],
    ),
    "RelayRouteFails": (
        ['proxy_route_up{listen="[::]:2222",pod="a"} 0x120', 'proxy_route_up{listen="[::]:2222",pod="b"} 1x120'],
        # A restart of the backend.
        ['proxy_route_up{listen="[::]:2222"} 1x110 0x3 1x10', 'proxy_route_up{listen="[::]:8443"} 1x120'],
    ),
    "IpModeWatchAbsent": (
        ['up{job="ip-mode-watch",pod="a"} 1x100 0x20', 'up{job="ip-mode-watch",pod="b"} 1x80 _x40'],
        ['up{job="ip-mode-watch",pod="a"} 0x120', 'up{job="ip-mode-watch",pod="b"} 1x120'],
    ),
    "IpModeNotInPlace": (
        [
            'dnsproxy_ip_mode_services{state="failed",pod="a"} 1x120',
            'dnsproxy_ip_mode_services{state="failed",pod="b"} 0x120',
        ],
        [
            # A pod that starts, and states that are no faults.
            'dnsproxy_ip_mode_services{state="starting",pod="a"} 0x110 1x5 0x5',
            'dnsproxy_ip_mode_services{state="in-place",pod="a"} 1x120',
            'dnsproxy_ip_mode_services{state="writing",pod="a"} 1x120',
            'dnsproxy_ip_mode_services{state="waiting",pod="a"} 1x120',
            'dnsproxy_ip_mode_services{state="undone",pod="a"} 1x120',
        ],
    ),
    "IpModeNothingToWrite": (
        [
            'dnsproxy_ip_mode_services{state="waiting",pod="a"} 1x120',
            'dnsproxy_ip_mode_services{state="waiting",pod="b"} 1x120',
        ],
        # A load balancer that has got its address after a quarter of an hour.
        ['dnsproxy_ip_mode_services{state="waiting"} 0x90 1x15 0x15'],
    ),
    "IpModeUndone": (
        # As a provider that undoes each write of a watch that has slowed down.
        ['dnsproxy_ip_mode_undone_total{pod="a"} 0+0.2x120', 'dnsproxy_ip_mode_undone_total{pod="b"} 0+0.2x120'],
        # A provider that writes its status anew every half hour.
        ['dnsproxy_ip_mode_undone_total{pod="a"} 0x29 1x29 2x29 3x33'],
    ),
    "WholeipAgentAbsent": (
        ['up{job="wholeip",node="a"} 0x120', 'up{job="wholeip",node="b"} 1x120'],
        ['up{job="wholeip",node="a"} 1x108 0x12'],
    ),
    "WholeipRulesRefused": (
        [
            'wholeip_apply_total{result="failed",node="a"} 0+2x120',
            'wholeip_apply_total{result="failed",node="b"} 7x120',
        ],
        [
            'wholeip_apply_total{result="failed",node="a"} 9x120',
            'wholeip_apply_total{result="applied",node="a"} 0+9x120',
        ],
    ),
    "WholeipOutOfStep": (
        ['wholeip_in_step{node="a"} 0x120', 'wholeip_in_step{node="b"} 1x120'],
        # An agent that starts is not in step at once.
        ['wholeip_in_step{node="a"} 1x108 0x5 1x10'],
    ),
    "WholeipClusterUnheard": (
        [
            'wholeip_watch_contact_timestamp_seconds{kind="Service",node="a"} 600x120',
            'wholeip_watch_contact_timestamp_seconds{kind="Node",node="a"} 0+60x120',
        ],
        ['wholeip_watch_contact_timestamp_seconds{kind="Service",node="a"} 0+60x120'],
    ),
    "WholeipAddressLeftOut": (
        [
            'wholeip_services_skipped{reason="address-taken",node="a"} 1x120',
            'wholeip_services_skipped{reason="address-taken",node="b"} 1x120',
        ],
        [
            'wholeip_services_skipped{reason="address-taken",node="a"} 0x120',
            'wholeip_services_skipped{reason="no-address",node="a"} 3x120',
            'wholeip_services_skipped{reason="no-endpoint",node="a"} 3x120',
        ],
    ),
    "WholeipRulesFoughtOver": (
        ['wholeip_drift_repaired_total{node="a"} 0+1x120', 'wholeip_drift_repaired_total{node="b"} 0x120'],
        ['wholeip_drift_repaired_total{node="a"} 0x100 1x20'],
    ),
}


@pytest.mark.peer("promtool")
def test_prometheus_takes_the_rules(tmp_path: Path) -> None:
    done = promtool("check", "rules", str(write_rules(tmp_path)))
    assert "SUCCESS" in done


def test_every_alert_has_its_cases() -> None:
    assert set(CASES) == set(alerts())


@pytest.mark.peer("promtool")
def test_an_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    check_alerts(tmp_path, *(case for name in CASES for case in (alert_case(name, fires=True), alert_case(name))))


@pytest.mark.peer("promtool")
def test_without_the_optional_components_no_alert_of_theirs_fires(tmp_path: Path) -> None:
    check_alerts(tmp_path, AlertCase("all are up", 'alertstate=~"pending|firing"', UP))


def test_alerts_ask_for_states_of_a_watch_that_there_are() -> None:
    expressions = " ".join(rule["expr"] for rule in alerts().values())
    asked = re.findall(r'dnsproxy_ip_mode_services\{state=~?"([^"]*)"', expressions)
    states = {state for one in asked for state in one.split("|")}
    # Another writer sets ipMode back: IpModeUndone counts that.
    assert states == {one.value for one in Standing} - {"in-place", "writing", "undone"}


class AlertCase(NamedTuple):
    """Series, and how many alerts with these labels there are after them."""

    name: str
    labels: str
    series: Sequence[str]
    fired: int = 0

    def document(self) -> dict[str, Any]:
        values = [{"series": row.partition(" ")[0], "values": row.partition(" ")[2]} for row in self.series]
        expected = [{"labels": "{}", "value": self.fired}] if self.fired else []
        asked = {"expr": f"count(ALERTS{{{self.labels}}})", "eval_time": "115m", "exp_samples": expected}
        return {"name": self.name, "interval": "1m", "input_series": values, "promql_expr_test": [asked]}


def alert_case(name: str, *, fires: bool = False) -> AlertCase:
    """An alert after the series by which it fires, or by which it is silent."""
    series = CASES[name][not fires]
    for one in UP:
        if not any(given.startswith(one.partition(" ")[0].rstrip("}")) for given in series):
            series = [*series, one]
    shown = f"{name} {'fires' if fires else 'is silent'}"
    return AlertCase(shown, f'alertname="{name}",alertstate="firing"', series, int(fires))


def check_alerts(folder: Path, *cases: AlertCase) -> None:
    """Have Prometheus judge all cases at once; it names those that fail."""
    document = {
        "rule_files": [str(write_rules(folder))],
        "evaluation_interval": "1m",
        "tests": [one.document() for one in cases],
    }
    (folder / "test.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    assert "SUCCESS" in promtool("test", "rules", str(folder / "test.yaml"))


def test_alerts_and_dashboard_use_only_metrics_that_exist(tmp_path: Path) -> None:
    text = json.dumps(groups()) + (FOLDER / "dashboard.json").read_text()
    # Metrics that an alert's description mentions count too.
    used = set(_METRIC.findall(text))
    with exposed(tmp_path) as names:
        assert {name for name in used if bare(name) not in names and name not in names} == set()
    assert len(used) > 10


@pytest.mark.peer("kubectl")
def test_a_monitor_finds_the_admin_port_of_its_pods_and_a_policy_opens_it(tmp_path: Path) -> None:
    manifests = render(compose(tmp_path, with_components=[FOLDER, DEPLOY / "components" / "ip-mode-watch"]))
    monitors = [one for one in manifests if one["kind"] == "ServiceMonitor"]
    opened = find(manifests, "NetworkPolicy", "metrics")["spec"]
    (expression,) = opened["podSelector"]["matchExpressions"]
    for monitor in monitors:
        (service,) = [one for one in of_kind(manifests, "Service") if selects(monitor["spec"]["selector"], one)]
        assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == monitor["metadata"]["name"]
        (port,) = service["spec"]["ports"]
        assert [one["port"] for one in monitor["spec"]["endpoints"]] == [port["name"]]
        (template,) = [
            one for _, one in pod_templates(manifests) if selects({"matchLabels": service["spec"]["selector"]}, one)
        ]
        ports = {one["name"]: one["containerPort"] for one in template["spec"]["containers"][0]["ports"]}
        assert ports[port["targetPort"]] == port["port"]
        assert template["metadata"]["labels"][expression["key"]] in expression["values"]
        assert opened["ingress"][0]["ports"] == [{"port": port["targetPort"], "protocol": "TCP"}]
    assert {one["metadata"]["name"] for one in monitors} == {"dnsproxy", "relay", "operate", "ip-mode-watch"}


def of_kind(manifests: Sequence[Manifest], kind: str) -> list[Manifest]:
    return [one for one in manifests if one["kind"] == kind]


def selects(selector: Mapping[str, Any], manifest: Manifest) -> bool:
    """Whether a selector with labels alone matches an object, or a pod's template."""
    return bool(selector["matchLabels"].items() <= manifest["metadata"].get("labels", {}).items())


def test_every_panel_asks_the_chosen_prometheus() -> None:
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    assert len({panel["id"] for panel in panels}) == len(panels)


def bare(name: str) -> str:
    """The name of a metric's family."""
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


@contextmanager
def exposed(folder: Path) -> Iterator[set[str]]:
    """The metric families of both programs, as scraped, and those of the others."""
    dns, dns_admin, relay, relay_admin = free_ports(4)
    serve = ["dnsproxy", "serve", f"--listen=127.0.0.1:{dns}", "--upstream=127.0.0.1:9"]
    serve += [f"--admin=127.0.0.1:{dns_admin}"]
    proxy = ["proxy", f"--route=127.0.0.1:{relay}=127.0.0.1:9", f"--admin=127.0.0.1:{relay_admin}"]
    # From the collectors of the others; running these programs needs a cluster.
    steering, watch = SteeringCollector(SteeringStatus()), WatchCollector(WatchStatus())
    collectors = (steering, watch, IpModeCollector([]), AgentCollector(AgentStatus()))
    names = {family.name for collector in collectors for family in collector.collect()}
    with ExitStack() as stack:
        for command, port in ((serve, dns_admin), (proxy, relay_admin)):
            log = stack.enter_context((folder / f"{command[0]}.log").open("wb"))
            process = subprocess.Popen([sys.executable, "-m", *command], stderr=log)
            stack.callback(end_process, process)
            wait_for(lambda port=port: is_listening(port), process=process, log=folder / f"{command[0]}.log")  # type: ignore[misc]
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                rows = answer.read().decode().splitlines()
            families = {row.split()[2] for row in rows if row.startswith("# TYPE")}
            names |= families | {bare(name) for name in families}
        yield names


def write_rules(folder: Path) -> Path:
    """The rules in Prometheus's own format, without the object around them."""
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": groups()}), encoding="utf-8")
    return path


def promtool(*words: str) -> str:
    done = subprocess.run([program("promtool"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
