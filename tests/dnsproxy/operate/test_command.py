"""The command line of operate."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.operate.command import operate, parse_selector, settings_of
from dnsproxy.operate.program import OperateSettings


def parsed(*arguments: str) -> OperateSettings:
    context = operate.make_context("operate", list(arguments))
    flags: dict[str, Any] = context.params
    return settings_of(flags)


def test_nothing_has_to_be_filled_in() -> None:
    settings = parsed()
    assert settings.places.service == ObjectRef("switchback", "dnsproxy")
    assert settings.places.namespace == "switchback"
    assert settings.places.relay_selector == (("app.kubernetes.io/name", "relay"),)
    assert settings.request is not None
    assert settings.request.method is None


def test_a_printed_stanza_is_its_owners() -> None:
    assert parsed("--method", "print").request is None


def test_the_routes_are_beside_dnsproxy_unless_they_are_named() -> None:
    assert parsed("--service", "dns/dnsproxy").places.namespace == "dns"
    assert parsed("--routes-namespace", "relays").places.namespace == "relays"


@pytest.mark.parametrize(
    ("text", "labels"),
    [("a=b", (("a", "b"),)), ("b=, a.b/c=D_e.f", (("a.b/c", "D_e.f"), ("b", "")))],
    ids=["one", "two"],
)
def test_a_selector_is_labels_with_values(text: str, labels: tuple[tuple[str, str], ...]) -> None:
    assert parse_selector(text) == labels


@pytest.mark.parametrize(
    "text", ["", "a", "=b", "a=b,", "a=b c=d", "a=b,a=c", "a in (b)", "a!=b", "-a=b", "a=-b", "A/b=c"]
)
def test_any_other_selector_is_a_mistake(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not LABEL=VALUE|twice"):
        parse_selector(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--relay-selector", "relay"], "--relay-selector"),
        (["--routes-namespace", "A B"], "--routes-namespace"),
        (["--service", "dnsproxy"], "--service"),
        (["--method", "magic"], "--method"),
        (["--admin", "8085"], "--admin"),
    ],
)
def test_a_mistake_names_its_flag(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(operate, arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_help_has_examples() -> None:
    done = CliRunner().invoke(operate, ["--help"])
    assert done.exit_code == 0
    assert "kubectl -n switchback get services" in done.output
