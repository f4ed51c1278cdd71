"""The settings of the sources, as a snapshot is compared by them."""

from __future__ import annotations

from dataclasses import dataclass

from dnsproxy.sources.ingress_hosts import TlsHosts
from dnsproxy.sources.selection import Selection
from dnsproxy.sources.settings import ClusterSettings, GatewayOptions, IngressOptions, SourceOptions, settings_of
from sidecar.kubernetes.selector import parse_annotation_selector, parse_selector


def test_every_option_of_a_source_is_a_setting() -> None:
    assert settings_of("ingress", IngressOptions(frozenset({"b", "a"}), tls_only=True)) == {
        "ingress classes": "a,b",
        "ingress tls_only": "yes",
        "ingress tls_hosts": "rules",
    }
    assert settings_of("ingress", IngressOptions(tls_hosts=TlsHosts.ALL)) == {
        "ingress classes": "",
        "ingress tls_only": "no",
        "ingress tls_hosts": "all",
    }


def test_options_of_any_plain_type_are_distinguished() -> None:
    @dataclass(frozen=True)
    class Options:
        classes: tuple[str, ...] = ()
        limit: int | None = None

    assert settings_of("x", Options(("b", "a"), 3)) == {"x classes": "a,b", "x limit": "3"}
    assert settings_of("x", Options()) == {"x classes": "", "x limit": ""}


def test_a_snapshot_depends_on_the_server_the_sources_and_their_options() -> None:
    settings = ClusterSettings(IngressOptions(), GatewayOptions(frozenset({"a"})), services=True, context="elsewhere")
    assert settings.snapshot_settings("https://192.0.2.1:6443") == {
        "API server": "https://192.0.2.1:6443",
        "sources": "ingress,gateway,service",
        "ingress classes": "",
        "ingress tls_only": "no",
        "ingress tls_hosts": "rules",
        "gateway classes": "a",
    }


def test_a_snapshot_depends_on_the_selection_only_where_something_was_chosen() -> None:
    chosen = Selection(("shop",), parse_selector("team=web"), parse_annotation_selector("a"))
    plain = ClusterSettings(services=True).snapshot_settings("https://192.0.2.1:6443")
    assert plain == {"API server": "https://192.0.2.1:6443", "sources": "service"}
    selected = ClusterSettings(services=True, selection=chosen).snapshot_settings("https://192.0.2.1:6443")
    assert selected == plain | {"namespaces": "shop", "label selector": "team=web", "annotation filter": "a"}


def test_a_snapshot_does_not_depend_on_the_order_of_the_sources() -> None:
    one, other = SourceOptions("traefik", frozenset({"a"})), SourceOptions("contour")
    settings = [ClusterSettings(others=order).snapshot_settings("server") for order in ((one, other), (other, one))]
    assert settings[0] == settings[1]
    assert settings[0]["sources"] == "contour,traefik"
    assert settings[0]["traefik classes"] == "a"
