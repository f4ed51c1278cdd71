"""The settings of the sources, as a snapshot is compared by them."""

from __future__ import annotations

from dataclasses import dataclass

from dnsproxy.sources.settings import ClusterSettings, GatewayOptions, IngressOptions, settings_of


def test_every_option_of_a_source_is_a_setting() -> None:
    assert settings_of("ingress", IngressOptions(frozenset({"b", "a"}), tls_only=True)) == {
        "ingress classes": "a,b",
        "ingress tls_only": "yes",
    }
    assert settings_of("ingress", IngressOptions()) == {"ingress classes": "", "ingress tls_only": "no"}


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
        "gateway classes": "a",
    }
