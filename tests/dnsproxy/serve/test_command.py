"""The command line of `dnsproxy serve`: flags and variables to settings, and one clear line for each bad value."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from dnsproxy.cli import main
from dnsproxy.forward.settings import ForwardSettings, TlsEndpoint
from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.rights import Annotations, Rights, parse_network
from dnsproxy.serve import command
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.sources.ingress_hosts import TlsHosts
from dnsproxy.sources.settings import IngressOptions, SourceOptions
from dnsproxy.tap.mode import TapMode
from sidecar.values.endpoints import Endpoint

UPSTREAM = ("--upstream", "192.0.2.53")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[ServeSettings]:
    """The settings that the command would have run with."""
    made: list[ServeSettings] = []

    def run(_: object, settings: ServeSettings, __: object, **_more: object) -> None:
        made.append(settings)

    monkeypatch.setattr(command, "run_program", run)
    return made


def invoke(*arguments: str, **environment: str) -> Any:
    return CliRunner().invoke(main, ["serve", *arguments], env=environment)


def test_other_sources_have_their_classes_and_each_counts_once(made: list[ServeSettings]) -> None:
    crd = "crd:sites.example.org:spec.hosts[*]"
    sources = ("--source", "traefik", "--source", crd, "--source", "ingress", "--source", "traefik")
    classes = ("--class-of", "traefik=internal", "--class-of", "traefik=public", "--class-of", f"{crd}=x")
    result = invoke(*UPSTREAM, *sources, *classes, "--target", "192.0.2.1")
    assert result.exit_code == 0, result.output
    cluster = made[0].cluster
    assert cluster is not None
    assert cluster.ingress is not None
    assert cluster.others == (
        SourceOptions("traefik", frozenset({"internal", "public"})),
        SourceOptions(crd, frozenset({"x"})),
    )


def test_a_class_of_ingresses_that_a_flag_names_needs_no_ingress_class(made: list[ServeSettings]) -> None:
    """Other sources have classes of their own, which say nothing of Ingresses."""
    sources = ("--source", "ingress", "--source", "external-dns", "--source", "traefik")
    classes = ("--ingress-class", "a", "--class-of", "external-dns=b", "--class-of", "traefik=c")
    targets = ("--target", "192.0.2.1", "--target-for", "d=192.0.2.2")
    result = invoke(*UPSTREAM, *sources, *classes, *targets)
    assert result.exit_code == 0, result.output
    assert made[0].rights.named_classes == {"a", "b", "d"}


def test_a_class_in_the_environment_is_no_source(made: list[ServeSettings]) -> None:
    result = invoke(*UPSTREAM, "--source", "traefik", "--target", "192.0.2.1", DNSPROXY_CLASS_OF="traefik=internal")
    assert result.exit_code == 0, result.output
    assert made[0].cluster is not None
    assert made[0].cluster.others == (SourceOptions("traefik", frozenset({"internal"})),)


def test_the_defaults_are_those_of_the_design(made: list[ServeSettings]) -> None:
    result = invoke(*UPSTREAM)
    assert result.exit_code == 0, result.output
    (settings,) = made
    assert settings.listen == (Endpoint("127.0.0.1", 1053),)
    assert settings.forwarding.upstreams == (Endpoint("192.0.2.53", 53),)
    assert settings.admin == Endpoint("127.0.0.1", 8081)
    assert (settings.ttl, settings.cluster, settings.hosts) == (5, None, ())
    assert settings.limits == NameLimits(per_object=1_000, per_namespace=20_000, total=500_000)
    assert (settings.forwarding.outstanding, settings.forwarding.per_client) == (10_000, 1_000)
    assert (settings.inherit, settings.resolv_conf) == (False, None)
    assert (settings.lameduck, settings.drain, settings.hold) == (5.0, 5.0, 600.0)
    assert settings.ownership == OwnershipSettings(Mode.WARN)
    assert settings.rights == Rights(Annotations.LABELLED)


def test_flags_give_rights_to_annotations_and_classes(made: list[ServeSettings]) -> None:
    networks = ("192.0.2.0/24", "2001:db8::7")
    result = invoke(
        *UPSTREAM,
        *("--annotations", "all", *(part for one in networks for part in ("--target-network", one))),
        *("--ingress-class", "edge", "--target-for", "inner=192.0.2.20"),
        *("--target-service", "infra/shared"),
    )
    assert result.exit_code == 0, result.output
    (settings,) = made
    named, shared = frozenset({"edge", "inner"}), frozenset({"service:infra/shared"})
    networked = tuple(map(parse_network, networks))
    assert settings.rights == Rights(Annotations.ALL, networked, shared, named)


def test_the_target_auto_follows_the_services_of_a_namespace(made: list[ServeSettings]) -> None:
    assert invoke(*UPSTREAM, "--source", "ingress", "--target", "192.0.2.1").exit_code == 0
    assert invoke(*UPSTREAM, "--source", "ingress", "--target", "auto").exit_code == 0
    own = ("--target-for", "a=auto", "--routes-namespace", "own")
    assert invoke(*UPSTREAM, "--source", "ingress", *own).exit_code == 0
    told = [(one.cluster.steers, one.cluster.routes_namespace) for one in made if one.cluster is not None]
    assert told == [(False, None), (True, None), (True, "own")]
    refused = invoke(*UPSTREAM, "--source", "ingress", "--target", "status", "--routes-namespace", "own")
    assert refused.exit_code == 2
    assert "--routes-namespace is for --target auto" in refused.output


AUTO = ("--source", "ingress", "--target", "auto")
VERIFIED = OwnershipSettings(Mode.VERIFY, replace=True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(AUTO, VERIFIED, id="auto"),
        pytest.param(("--source", "gateway", "--target-for", "envoy=auto"), VERIFIED, id="auto for one class"),
        pytest.param(
            ("--source", "ingress", "--target", "192.0.2.1"), OwnershipSettings(Mode.WARN), id="an address is meant"
        ),
        pytest.param(("--source", "ingress", "--target", "status"), OwnershipSettings(Mode.WARN), id="the status"),
        pytest.param((*AUTO, "--replace", "auto"), VERIFIED, id="auto, said too"),
        pytest.param((*AUTO, "--replace", "off"), OwnershipSettings(Mode.VERIFY), id="verified and not replaced"),
        pytest.param((*AUTO, "--ownership", "off"), OwnershipSettings(Mode.OFF, replace=True), id="replaced alone"),
        pytest.param((*AUTO, "--ownership", "warn"), OwnershipSettings(Mode.WARN, replace=True), id="told"),
        pytest.param(
            ("--source", "ingress", "--target", "192.0.2.1", "--ownership", "verify"),
            OwnershipSettings(Mode.VERIFY),
            id="an address, verified",
        ),
        pytest.param(
            (*AUTO, "--replace", "203.0.113.10=10.96.7.7"),
            OwnershipSettings(Mode.VERIFY, replace=True, replaced=(("203.0.113.10", ("10.96.7.7",)),)),
            id="one more, which leaves auto as it is",
        ),
        pytest.param(
            ("--replace", "203.0.113.10=10.96.7.7"),
            OwnershipSettings(Mode.WARN, replaced=(("203.0.113.10", ("10.96.7.7",)),)),
            id="without a cluster",
        ),
    ],
)  # fmt: skip
def test_names_are_verified_and_replies_replaced_where_a_service_is_steered(
    made: list[ServeSettings], arguments: tuple[str, ...], expected: OwnershipSettings
) -> None:
    result = invoke(*UPSTREAM, *arguments)
    assert result.exit_code == 0, result.output
    assert made[0].ownership == expected


def test_variables_set_what_is_verified_trusted_and_replaced(made: list[ServeSettings]) -> None:
    replaced = "auto 203.0.113.10=10.96.7.7 203.0.113.11=10.96.7.7,10.96.7.8"
    variables = {"DNSPROXY_REPLACE": replaced, "DNSPROXY_TRUST": "example.org 198.51.100.1", "DNSPROXY_OWNERSHIP": ""}
    result = CliRunner().invoke(main, ["serve", *UPSTREAM, *AUTO], env=variables)
    assert result.exit_code == 0, result.output
    found = made[0].ownership
    assert (found.mode, found.replace, found.zones) == (Mode.VERIFY, True, ("example.org",))
    assert [str(one) for one in found.networks] == ["198.51.100.1/32"]
    assert found.replaced == (("203.0.113.10", ("10.96.7.7",)), ("203.0.113.11", ("10.96.7.7", "10.96.7.8")))


def test_the_target_for_a_class_may_be_for_an_istio_selector(made: list[ServeSettings]) -> None:
    given = ("--target-for", "app=gateway,istio=ingressgateway=192.0.2.20", "--target-for", "inner=192.0.2.21")
    assert invoke(*UPSTREAM, "--source", "ingress", *given).exit_code == 0
    (settings,) = made
    assert settings.targets.by_class == {
        "app=gateway,istio=ingressgateway": ("192.0.2.20",),
        "inner": ("192.0.2.21",),
    }


def test_every_flag_arrives_in_the_settings(made: list[ServeSettings], tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.touch()
    result = invoke(
        *("--listen", "[::1]:5353", "--listen", "127.0.0.1:5354", "--listen", "systemd"),
        *("--upstream", "[2001:db8::53]:5300", *UPSTREAM),
        *("--host", "App.Example.org.=192.0.2.10", "--host", "app.example.org=2001:db8::10,192.0.2.10"),
        *("--hosts-file", str(hosts)),
        *("--source", "ingress", "--kubeconfig", "k", "--context", "c", "--ingress-class", "a", "--tls-only"),
        *("--tls-hosts", "all"),
        *("--target", "192.0.2.20", "--target-for", "internal=192.0.2.21"),
        *("--zone", "example.org", "--deny", "no.example.org", "--cluster-domain", "k8s.example.org"),
        *("--allow", "Corp.Example.net.", "--allow", "lan"),
        *("--hold", "3600", "--ttl", "30", "--lameduck", "2.5", "--drain", "1", "--admin", "off"),
        *("--outstanding", "500", "--outstanding-per-client", "50"),
        *("--max-names-per-object", "5", "--max-names-per-namespace", "60", "--max-names", "700"),
        *("--ownership", "enforce", "--trust", "Shop.example.org."),
        *("--trust", "203.0.113.0/24", "--trust", "2001:db8::7"),
        *("--replace", "203.0.113.10=10.96.7.7", "--replace", "2001:DB8::0010 = 2001:db8::7,10.96.7.7"),
    )
    assert result.exit_code == 0, result.output
    (settings,) = made
    assert [str(endpoint) for endpoint in settings.listen] == ["[::1]:5353", "127.0.0.1:5354"]
    assert [str(endpoint) for endpoint in settings.forwarding.upstreams] == ["[2001:db8::53]:5300", "192.0.2.53:53"]
    assert [(claim.hostname, claim.terms.addresses) for claim in settings.hosts] == [
        ("app.example.org", ("192.0.2.10", "2001:db8::10"))
    ]
    assert settings.cluster is not None
    assert (settings.cluster.kubeconfig, settings.cluster.context) == ("k", "c")
    assert settings.cluster.ingress == IngressOptions(frozenset({"a"}), tls_only=True, tls_hosts=TlsHosts.ALL)
    assert settings.cluster.gateway is None
    assert settings.targets.default == ("192.0.2.20",)
    assert settings.targets.by_class == {"internal": ("192.0.2.21",)}
    assert settings.guards.zones == ("example.org",)
    assert settings.guards.deny == ("no.example.org",)
    assert settings.guards.cluster_domains == ("k8s.example.org",)
    assert settings.guards.allow == ("corp.example.net", "lan")
    assert settings.ownership.mode is Mode.ENFORCE
    assert settings.ownership.zones == ("shop.example.org",)
    assert [str(one) for one in settings.ownership.networks] == ["203.0.113.0/24", "2001:db8::7/128"]
    assert not settings.ownership.replace
    assert settings.ownership.replaced == (
        ("203.0.113.10", ("10.96.7.7",)),
        ("2001:db8::10", ("2001:db8::7", "10.96.7.7")),
    )
    assert (settings.ttl, settings.admin, settings.hosts_file) == (30, None, hosts)
    assert settings.limits == NameLimits(per_object=5, per_namespace=60, total=700)
    assert (settings.lameduck, settings.drain, settings.inherit, settings.hold) == (2.5, 1.0, True, 3600.0)
    assert (settings.forwarding.outstanding, settings.forwarding.per_client) == (500, 50)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(("--allow", "*.lan"), "--allow: '*.lan' is a wildcard; name the zone, lan", id="allow a wildcard"),
        pytest.param(("--allow", "."), "--allow: '.' is not a hostname", id="allow everything"),
        pytest.param(("--allow", "192.0.2.1"), "--allow: '192.0.2.1' is an IP address", id="allow an address"),
        pytest.param(("--ttl", "0"), "--ttl: 0 is not in the range", id="ttl too small"),
        pytest.param(("--hold", "-1"), "--hold: -1", id="hold before now"),
        pytest.param(("--hold", "10m"), "--hold: '10m'", id="hold with a unit"),
        pytest.param(("--ttl", "soon"), "--ttl: 'soon'", id="ttl not a number"),
        pytest.param(("--listen", "localhost:53"), "--listen: 'localhost' is not an IP address", id="listen on a name"),
        pytest.param(("--listen", "127.0.0.1:65536"), "--listen: ", id="no such port"),
        pytest.param(("--listen", "Systemd"), "--listen: 'Systemd' is not ADDR:PORT", id="systemd in other case"),
        pytest.param(("--listen", "systemd:53"), "--listen: 'systemd' is not an IP address", id="systemd with a port"),
        pytest.param(
            ("--upstream", "tls://192.0.2.53"),
            "--upstream: 'tls://192.0.2.53' has no name to expect",
            id="tls and no name",
        ),
        pytest.param(
            ("--upstream", "https://192.0.2.53/"),
            "is ADDR[:PORT], tcp://ADDR[:PORT] or tls://ADDR[:PORT]#NAME",
            id="https",
        ),
        *(
            pytest.param((flag, value), f"{flag}: {complaint}", id=f"{flag} {value}")
            for flag in ("--outstanding", "--outstanding-per-client")
            for value, complaint in [
                ("0", "0 is not in the range"),
                ("-1", "-1 is not in the range"),
                ("1000001", "1000001 is not in the range"),
                ("many", "'many' is not a valid integer"),
                ("1.5", "'1.5' is not a valid integer"),
                ("", "'' is not a valid integer"),
            ]
        ),
        *(
            pytest.param((flag, value), f"{flag}: {complaint}", id=f"{flag} {value}")
            for flag in ("--max-names-per-object", "--max-names-per-namespace", "--max-names")
            for value, complaint in [("0", "0 is not in the range"), ("all", "'all' is not a valid integer")]
        ),
        *(
            pytest.param((flag, value), f"{flag}: {complaint}", id=f"{flag} {value}")
            for flag in ("--lameduck", "--drain")
            for value, complaint in [
                ("-1", "-1.0 is not in the range"),
                ("86401", "86401.0 is not in the range"),
                ("nan", "'nan' is not a number of seconds"),
                ("inf", "inf is not in the range"),
                ("5s", "'5s' is not a number of seconds"),
            ]
        ),
        pytest.param(("--upstream", "dns.example.org"), "--upstream: 'dns.example.org'", id="upstream by name"),
        pytest.param(
            ("--host", "app.example.org"), "--host: 'app.example.org' is not NAME=IP", id="host without address"
        ),
        pytest.param(("--host", "app.example.org=nine"), "--host: 'nine' is not an IP address", id="host with a name"),
        pytest.param(
            ("--host", "192.0.2.1=192.0.2.2"), "--host: '192.0.2.1' is an IP address", id="address for a name"
        ),
        pytest.param(("--host", "*=192.0.2.2"), "--host: '*' is not a hostname", id="bare wildcard"),
        pytest.param(("--host", "a.example.org=255.255.255.255"), "--host: '255.255.255.255'", id="broadcast"),
        pytest.param(("--target", "fe80::1"), "--target: 'fe80::1' is link-local", id="target of one link"),
        pytest.param(("--target-for", "a=::ffff:192.0.2.1"), "write 192.0.2.1", id="target in IPv6 form"),
        pytest.param(
            ("--hosts-file", "/nowhere/hosts"), "--hosts-file /nowhere/hosts: No such file", id="no hosts file"
        ),
        pytest.param(("--source", "services"), "--source: 'services'", id="unknown source"),
        pytest.param(("--target", "0.0.0.0"), "--target: '0.0.0.0' is not an address", id="unspecified target"),
        pytest.param(
            ("--target-for", "192.0.2.1"), "--target-for: '192.0.2.1' is not CLASS=TARGET", id="class without target"
        ),
        pytest.param(("--target-for", "=192.0.2.1"), "--target-for: '=192.0.2.1' is not CLASS=TARGET", id="no class"),
        pytest.param(("--target-for", "istio=ingressgateway"), "--target-for: 'ingressgateway' is", id="no target"),
        pytest.param(("--annotations", "none"), "--annotations: 'none'", id="unknown place of annotations"),
        pytest.param(("--annotations", "true"), "--annotations: 'true'", id="annotations as a switch"),
        pytest.param(("--target-service", "shared"), "--target-service: 'shared'", id="service without namespace"),
        pytest.param(("--target-network", "192.0.2.1/24"), "--target-network: '192.0.2.1/24'", id="host bits"),
        pytest.param(("--target-network", "10.0.0.0/33"), "--target-network: '10.0.0.0/33'", id="bad mask"),
        pytest.param(("--target-network", "example.org"), "--target-network: 'example.org'", id="name as network"),
        pytest.param(("--ownership", "on"), "--ownership: 'on'", id="unknown mode"),
        pytest.param(("--ownership", "Enforce"), "--ownership: 'Enforce'", id="mode in other case"),
        pytest.param(("--trust", "192.0.2.7/24"), "--trust: '192.0.2.7/24' is not a network", id="host bits set"),
        pytest.param(("--trust", "*.example.org"), "name the zone, example.org", id="wildcard as a zone"),
        pytest.param(("--trust", "192.0.2.300"), "--trust: '192.0.2.300' is neither", id="neither zone nor address"),
        pytest.param(("--replace", "Auto"), "--replace: 'Auto' is not ADDRESS=TARGET", id="replace in other case"),
        pytest.param(("--replace", "203.0.113.10"), "'203.0.113.10' is not ADDRESS=TARGET", id="replaced by nothing"),
        pytest.param(("--replace", "203.0.113.10="), "--replace: '' is not an", id="replaced by an empty text"),
        pytest.param(("--replace", "lb.example.org=10.96.7.7"), "'lb.example.org' is not an", id="replaced name"),
        pytest.param(("--replace", "203.0.113.0/24=10.96.7.7"), "'203.0.113.0/24' is not an", id="replaced network"),
        pytest.param(("--replace", "203.0.113.10=relay"), "--replace: 'relay' is not an", id="replaced by a name"),
        pytest.param(("--replace", "203.0.113.10=0.0.0.0"), "'0.0.0.0' is not an", id="replaced by no address"),
        pytest.param(("--replace", "auto"), "--replace auto is for --target auto", id="auto without a cluster"),
        pytest.param(
            ("--replace", "auto", "--source", "ingress", "--target", "192.0.2.1"),
            "--replace auto is for --target auto",
            id="auto with an address as the target",
        ),
        pytest.param(
            (*AUTO, "--replace", "off", "--replace", "auto"), "--replace off replaces nothing", id="auto and off"
        ),
        pytest.param(
            ("--replace", "203.0.113.10=10.96.7.7", "--replace", "off"),
            "--replace off replaces nothing: leave out the other --replace",
            id="an address and off",
        ),
        pytest.param(
            ("--replace", "2001:db8::10=10.96.7.7", "--replace", "2001:DB8:0::10=10.96.7.8"),
            "--replace 2001:db8::10=...: give all its targets in one value",
            id="an address that is replaced twice",
        ),
        pytest.param(
            ("--replace", "203.0.113.10=10.96.7.7,203.0.113.11", "--replace", "203.0.113.11=10.96.7.8"),
            "--replace: 203.0.113.11 is replaced, and replaces another address",
            id="a chain of replacements",
        ),
        pytest.param(
            ("--replace", "203.0.113.10=203.0.113.10"),
            "--replace: 203.0.113.10 is replaced, and replaces another address",
            id="replaced by itself",
        ),
        pytest.param(("--zone", "-bad-"), "--zone: '-bad-'", id="bad zone"),
        pytest.param(("--zone", "*.example.org"), "--zone: '*.example.org' is a wildcard", id="wildcard for a zone"),
        pytest.param(("--cluster-domain", "*.k8s.test"), "name the zone, k8s.test", id="wildcard for the cluster"),
        pytest.param(("--cluster-domain", "."), "--cluster-domain: '.' is not a hostname", id="root for the cluster"),
        pytest.param(("--deny", "10.0.0.1"), "--deny: '10.0.0.1' is an IP address", id="address to deny"),
        pytest.param(("--admin", "8081"), "--admin: ", id="admin without address"),
        pytest.param(("--resolv-conf", "/nowhere"), "--resolv-conf /nowhere: No such file", id="no resolv.conf"),
        pytest.param(
            ("--resolv-conf", "/dev/null"), "has no nameserver; name one with --upstream", id="empty resolv.conf"
        ),
        pytest.param(("--source", "ingress"), "--source needs --target", id="source without target"),
        pytest.param(
            ("--source", "nginx", "--target", "192.0.2.1"), "'nginx' is none of ingress, gateway", id="source"
        ),
        pytest.param(
            ("--source", "crd:a.example.org:spec.x", "--source", "crd:a.example.org:spec.y", "--target", "192.0.2.1"),
            "crd:a.example.org: give all its paths in one value",
            id="one kind twice",
        ),
        pytest.param(("--class-of", "traefik=internal"), "there is no --source traefik", id="class of no source"),
        pytest.param(("--upstream", "127.0.0.1:1053"), "is an address that dnsproxy listens on", id="loop"),
        pytest.param(("--lissen", "127.0.0.1:53"), "Did you mean '--listen'?", id="unknown flag"),
    ],
)
def test_a_bad_value_is_one_line_that_names_it_and_status_2(arguments: tuple[str, ...], complaint: str) -> None:
    needs_upstream = not {"--resolv-conf", "--upstream"} & set(arguments)
    result = invoke(*arguments, *(UPSTREAM if needs_upstream else ()))
    assert result.exit_code == 2, result.output
    assert complaint in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.output


def test_all_bad_values_are_reported_together_with_their_variables() -> None:
    result = invoke("--listen", "x", "--host", "y", DNSPROXY_TTL="0", DNSPROXY_UPSTREAM="z 192.0.2.53")
    assert result.exit_code == 2
    for part in ("--listen: ", "--host: ", "--ttl (from DNSPROXY_TTL): ", "--upstream (from DNSPROXY_UPSTREAM): "):
        assert part in result.stderr


def test_a_variable_sets_a_flag_and_an_empty_one_counts_as_unset(made: list[ServeSettings]) -> None:
    result = invoke(DNSPROXY_UPSTREAM="192.0.2.53 192.0.2.54:5353", DNSPROXY_TTL="", DNSPROXY_DENY="a.example.org")
    assert result.exit_code == 0, result.output
    assert [str(one) for one in made[0].forwarding.upstreams] == ["192.0.2.53:53", "192.0.2.54:5353"]
    assert made[0].ttl == 5
    assert made[0].guards.deny == ("a.example.org",)


def test_a_flag_beats_its_variable(made: list[ServeSettings]) -> None:
    assert invoke(*UPSTREAM, "--ttl", "7", DNSPROXY_TTL="8").exit_code == 0
    assert made[0].ttl == 7


def test_upstreams_and_cluster_domain_come_from_resolv_conf(made: list[ServeSettings], tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.1\nnameserver 2001:db8::1\nsearch a.svc.k8s.test svc.k8s.test k8s.test\n")
    assert invoke("--resolv-conf", str(path)).exit_code == 0
    assert [str(one) for one in made[0].forwarding.upstreams] == ["192.0.2.1:53", "[2001:db8::1]:53"]
    assert made[0].guards.cluster_domains == ("k8s.test",)
    assert made[0].resolv_conf == path


@pytest.mark.parametrize(
    ("arguments", "search"),
    [
        pytest.param(("--source", "ingress", "--target", "192.0.2.20"), ("eu.example.org", "lan"), id="a cluster"),
        pytest.param(
            (*UPSTREAM, "--source", "service", "--target", "status"), ("eu.example.org", "lan"), id="upstreams"
        ),
        pytest.param((), (), id="static names alone"),
    ],
)
def test_search_domains_come_from_resolv_conf_if_a_cluster_is_watched(
    made: list[ServeSettings], tmp_path: Path, arguments: tuple[str, ...], search: tuple[str, ...]
) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.1\nsearch EU.example.org. . lan *.x\n")
    assert invoke("--resolv-conf", str(path), *arguments).exit_code == 0
    assert made[0].guards.search == search
    assert made[0].search_conf == (path if search else None)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        pytest.param(["service"], (False, False, True), id="services alone"),
        pytest.param(["gateway", "service"], (False, True, True), id="two"),
        pytest.param(["ingress"], (True, False, False), id="Ingresses alone"),
    ],
)
def test_only_the_sources_that_are_named_count(
    made: list[ServeSettings], named: list[str], expected: tuple[bool, bool, bool]
) -> None:
    sources = [part for name in named for part in ("--source", name)]
    assert invoke(*UPSTREAM, *sources, "--target", "192.0.2.20").exit_code == 0
    cluster = made[0].cluster
    assert cluster is not None
    assert (cluster.ingress is not None, cluster.gateway is not None, cluster.services) == expected
    assert cluster.snapshot_settings("https://api.example.org")["sources"] == ",".join(named)


@pytest.mark.parametrize(
    ("arguments", "environment", "sources"),
    [
        pytest.param((), {"SOURCE": "ingress", "SOURCE_GATEWAY": "gateway"}, "ingress,gateway", id="two components"),
        pytest.param((), {"SOURCE": "", "SOURCE_A": "traefik"}, "traefik", id="one alone"),
        pytest.param((), {"SOURCE_A": "traefik traefik", "SOURCE_B": "traefik"}, "traefik", id="one source, thrice"),
        pytest.param(
            (),
            {"SOURCE_TRAEFIK": "traefik", "SOURCE_CONTOUR": "contour", "CLASS_OF": "traefik=internal"},
            "contour,traefik",
            id="beside a class, which is not a source",
        ),
        pytest.param(
            (),
            {"SOURCE_OWN": "crd:sites.example.org:spec.hosts[*] crd:b.example.org:spec.b", "SOURCE": "ingress"},
            "ingress,crd:b.example.org:spec.b,crd:sites.example.org:spec.hosts[*]",
            id="other kinds",
        ),
        pytest.param(("--source", "service"), {"SOURCE": "ingress", "SOURCE_A": "x"}, "service", id="a flag overrides"),
    ],
)
def test_variables_of_several_components_add_their_sources(
    made: list[ServeSettings], arguments: tuple[str, ...], environment: dict[str, str], sources: str
) -> None:
    variables = {f"DNSPROXY_{name}": text for name, text in environment.items()}
    result = invoke(*UPSTREAM, *arguments, "--target", "192.0.2.20", **variables)
    assert result.exit_code == 0, result.output
    cluster = made[0].cluster
    assert cluster is not None
    assert cluster.snapshot_settings("https://api.example.org")["sources"] == sources


def test_a_source_of_one_component_does_not_go_with_a_table_from_another() -> None:
    variables = {"DNSPROXY_SOURCE": "rpz:rpz.example.org@192.0.2.1:53", "DNSPROXY_SOURCE_GATEWAY": "gateway"}
    result = invoke(*UPSTREAM, "--target", "192.0.2.20", **variables)
    assert result.exit_code == 2
    assert "--source rpz: brings the whole table" in result.output


def test_a_flag_brings_the_table_whatever_components_add(made: list[ServeSettings]) -> None:
    variables = {"DNSPROXY_SOURCE": "ingress", "DNSPROXY_SOURCE_GATEWAY": "gateway"}
    result = invoke(*UPSTREAM, "--source=rpz:rpz.example.org@192.0.2.1:53", "--target", "192.0.2.20", **variables)
    assert result.exit_code == 0, result.output
    assert (made[0].cluster, made[0].replica is not None) == (None, True)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="no file"),
        pytest.param("", id="empty"),
        pytest.param("nameserver 192.0.2.1\n", id="nameservers alone"),
        pytest.param("search example.org corp.example.net\n", id="a host's own list"),
        pytest.param("domain k8s.test\n", id="a domain line"),
        pytest.param("search svc.k8s.test\n", id="nothing behind svc"),
        pytest.param("# search a.svc.k8s.test svc.k8s.test k8s.test\n", id="a comment"),
        pytest.param("search \x00\xff\n", id="no text"),
    ],
)
def test_without_a_known_cluster_domain_the_usual_ones_are_guarded(
    made: list[ServeSettings], tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "resolv.conf"
    if content is not None:
        path.write_text(content, encoding="latin-1")
    assert invoke("--resolv-conf", str(path), *UPSTREAM).exit_code == 0
    assert made[0].guards.cluster_domains == ("cluster.local", "cozy.local")


def test_a_cluster_domain_that_is_named_stands_beside_the_one_that_is_found(
    made: list[ServeSettings], tmp_path: Path
) -> None:
    """A pod on the host's network sees the host's file."""
    path = tmp_path / "resolv.conf"
    path.write_text("search a.svc.k8s.test svc.k8s.test k8s.test\n")
    assert invoke("--resolv-conf", str(path), *UPSTREAM, "--cluster-domain", "Other.test.").exit_code == 0
    assert made[0].guards.cluster_domains == ("k8s.test", "other.test")


def test_the_options_of_resolv_conf_count_and_the_limits_stay_those_of_the_flags(
    made: list[ServeSettings], tmp_path: Path
) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.1\noptions ndots:5 rotate use-vc attempts:1 timeout:1 edns0\n")
    assert invoke("--resolv-conf", str(path), "--outstanding", "9").exit_code == 0
    assert made[0].forwarding == ForwardSettings(
        (Endpoint("192.0.2.1", 53),), outstanding=9, rotate=True, attempts=1, use_tcp=True
    )


def test_the_config_maps_with_upstreams_keep_their_order_also_of_a_variable(
    made: list[ServeSettings], tmp_path: Path
) -> None:
    resolv_conf = tmp_path / "resolv.conf"
    resolv_conf.write_text("nameserver 192.0.2.1\n")
    first, second = "kube-system/nodelocaldns", "kube-system/coredns"
    flags: tuple[str, ...] = ("--resolv-conf", str(resolv_conf))
    named: tuple[str, ...] = (*flags, "--upstream-configmap", first, "--upstream-configmap", second)
    for given, variable in ((named, "kube-system/other"), (flags, f"{first}  {second}\n")):
        assert invoke(*given, DNSPROXY_UPSTREAM_CONFIGMAP=variable).exit_code == 0
        found = made.pop().upstream_configmaps
        assert found is not None
        assert [str(ref) for ref in found.refs] == [first, second]
    assert invoke(*named, DNSPROXY_UPSTREAM_IMPORTS="kube-system/coredns-custom").exit_code == 0
    followed = made.pop().upstream_configmaps
    assert followed is not None
    assert [str(ref) for ref in followed.imports] == ["kube-system/coredns-custom"]
    for given in (flags, (*named, *UPSTREAM)):
        assert invoke(*given).exit_code == 0
        assert made.pop().upstream_configmaps is None


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("search corp.test\n", id="no nameserver"),
        pytest.param("nameserver 127.0.0.1\n", id="this server alone"),
    ],
)
def test_a_node_needs_no_nameserver_where_a_config_map_names_upstreams(
    made: list[ServeSettings], tmp_path: Path, content: str
) -> None:
    """An air gap."""
    path = tmp_path / "resolv.conf"
    path.write_text(content)
    given = ("--resolv-conf", str(path), "--listen", "127.0.0.1:53")
    assert invoke(*given, "--upstream-configmap", "kube-system/coredns").exit_code == 0
    assert made[0].without_loops(made[0].listen)[0].upstreams == ()
    result = invoke(*given)
    assert (result.exit_code, len(made)) == (2, 1), "without a ConfigMap there is nobody to ask"


@pytest.mark.parametrize("text", ["coredns", "kube-system/", "/coredns", "a/b/c", "kube-system/Coredns", "a/b,c/d"])
def test_a_config_map_that_is_none_is_an_error_that_quotes_it(text: str) -> None:
    result = invoke("--upstream-configmap", "kube-system/coredns", "--upstream-configmap", text, *UPSTREAM)
    assert result.exit_code == 2
    assert f"--upstream-configmap: '{text}' is not NAMESPACE/NAME" in result.stderr


def test_a_named_upstream_leaves_resolv_conf_alone(made: list[ServeSettings], tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.1\noptions rotate use-vc\n")
    assert invoke("--resolv-conf", str(path), *UPSTREAM).exit_code == 0
    assert made[0].forwarding == ForwardSettings((Endpoint("192.0.2.53", 53),))
    assert made[0].resolv_conf is None


def test_a_resolv_conf_that_names_us_alone_is_a_loop(tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 127.0.0.1\n")
    result = invoke("--resolv-conf", str(path), "--listen", "127.0.0.1:53")
    assert result.exit_code == 2
    assert f"--resolv-conf {path}: nameserver 127.0.0.1:53 is an address that dnsproxy listens on" in result.stderr


@pytest.mark.parametrize("content", ["127.0.0.1 192.0.2.1", "192.0.2.1 127.0.0.1"], ids=["first", "second"])
def test_a_resolv_conf_that_names_another_server_too_is_none(
    made: list[ServeSettings], tmp_path: Path, content: str
) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("".join(f"nameserver {address}\n" for address in content.split()))
    assert invoke("--resolv-conf", str(path), "--listen", "127.0.0.1:53").exit_code == 0
    forwarding, ours = made[0].without_loops(made[0].listen)
    assert forwarding.upstreams == (Endpoint("192.0.2.1", 53),)
    assert ours == (Endpoint("127.0.0.1", 53),)


def test_upstreams_over_tls_stand_beside_others(made: list[ServeSettings]) -> None:
    assert invoke("--upstream", "tls://192.0.2.53#dns.example.org", *UPSTREAM).exit_code == 0
    assert made[0].forwarding.upstreams == (
        TlsEndpoint("192.0.2.53", 853, "dns.example.org"),
        Endpoint("192.0.2.53", 53),
    )


def test_systemd_alone_binds_nothing_else(made: list[ServeSettings]) -> None:
    assert invoke(*UPSTREAM, "--listen", "systemd").exit_code == 0
    assert (made[0].listen, made[0].inherit) == ((), True)


def test_variables_set_sockets_upstreams_and_limits(made: list[ServeSettings]) -> None:
    result = invoke(
        DNSPROXY_LISTEN="systemd 127.0.0.1:5353",
        DNSPROXY_UPSTREAM="tls://192.0.2.53#dns.example.org",
        DNSPROXY_OUTSTANDING="7",
        DNSPROXY_OUTSTANDING_PER_CLIENT="3",
        DNSPROXY_LAMEDUCK="0",
    )
    assert result.exit_code == 0, result.output
    (settings,) = made
    assert (settings.inherit, settings.listen) == (True, (Endpoint("127.0.0.1", 5353),))
    tls = TlsEndpoint("192.0.2.53", 853, "dns.example.org")
    assert settings.forwarding == ForwardSettings((tls,), outstanding=7, per_client=3)
    assert settings.lameduck == 0


@pytest.mark.parametrize("mode", TapMode)
def test_the_tap_is_on_unless_the_flag_says_otherwise(made: list[ServeSettings], mode: TapMode) -> None:
    assert invoke(*UPSTREAM).exit_code == 0
    assert invoke(*UPSTREAM, "--tap", mode.value).exit_code == 0
    assert invoke(*UPSTREAM, DNSPROXY_TAP=mode.value).exit_code == 0
    assert [one.tap for one in made] == [TapMode.ON, mode, mode]


def test_another_word_for_the_tap_is_bad_usage() -> None:
    result = invoke(*UPSTREAM, "--tap", "yes")
    assert result.exit_code == 2
    assert "--tap: 'yes' is not one of 'on', 'off', 'recent'" in result.stderr


def test_no_flag_can_be_set_by_what_kubernetes_injects() -> None:
    """A Service called `dnsproxy` puts DNSPROXY_PORT and DNSPROXY_SERVICE_HOST into every pod beside it."""
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        for param in command.params:
            for flag in param.opts if getattr(param, "allow_from_autoenv", True) else ():
                assert not flag.endswith(("-port", "-service-host", "-service-port")), (name, flag)


@pytest.mark.parametrize("command", ["serve", "demo", "install", "uninstall"])
def test_help_comes_with_examples(command: str) -> None:
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert f"dnsproxy {command}" in result.output


def test_a_dnstap_collector_is_told_the_hostname_or_what_the_flag_says(made: list[ServeSettings]) -> None:
    invoke(*UPSTREAM)
    assert invoke(*UPSTREAM, "--dnstap", "tcp:192.0.2.9:6000").exit_code == 0
    assert invoke(*UPSTREAM, "--dnstap", "unix:/run/dnstap.sock", "--dnstap-identity", "pod-7").exit_code == 0
    none, tcp, unix = (settings.dnstap for settings in made)
    assert none is None
    assert tcp is not None
    assert (tcp.collector, tcp.identity) == (Endpoint("192.0.2.9", 6000), socket.gethostname())
    assert tcp.version.startswith("switchback ")
    assert unix is not None
    assert (str(unix.collector), unix.identity) == ("/run/dnstap.sock", "pod-7")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(("--dnstap", "/run/dnstap.sock"), "--dnstap: '/run/dnstap.sock' is not unix:PATH", id="a path"),
        pytest.param(("--dnstap", "tcp:collector:6000"), "--dnstap: 'collector' is not an IP", id="a name"),
        pytest.param(("--dnstap-identity", "pod-7"), "--dnstap-identity is for --dnstap", id="an identity alone"),
        pytest.param(("--dnstap", "unix:/a", "--tap", "off"), "--tap off shows queries to nobody", id="the tap is off"),
        pytest.param(
            ("--dnstap", "unix:/a", "--dnstap-identity", "a\nb"), "--dnstap-identity: ", id="an identity of two lines"
        ),
    ],
)
def test_bad_dnstap_flags_are_refused(made: list[ServeSettings], arguments: tuple[str, ...], told: str) -> None:
    result = invoke(*UPSTREAM, *arguments)
    assert result.exit_code == 2
    assert told in result.output + str(result.exception)
    assert not made
