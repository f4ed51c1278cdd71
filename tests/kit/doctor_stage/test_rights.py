"""The account of a state has the rights of the doctor's component, and lacks only what the state denies."""

from __future__ import annotations

import pytest

from tests.kit.doctor_stage.rights import rules_without


def resources(*denied: str) -> set[str]:
    return {name for rule in rules_without(denied) for name in rule["resources"]}


def test_what_is_denied_is_gone_and_everything_else_stays() -> None:
    assert {"services", "ingresses", "configmaps"} <= resources()
    assert resources("services", "configmaps") == resources() - {"services", "configmaps"}


def test_a_rule_without_resources_is_no_rule() -> None:
    assert all(rule["resources"] for rule in rules_without(["configmaps"]))


def test_a_resource_that_the_doctor_never_reads_cannot_be_denied() -> None:
    with pytest.raises(KeyError, match="secrets"):
        rules_without(["secrets"])
