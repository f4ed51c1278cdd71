"""The shape of the policy; what it does is judged by real API servers in tests/peers/test_ip_mode_policy.py."""

from __future__ import annotations

import pytest
import yaml

from dnsproxy.ip_mode.policy import NAME, format_policy, make_policy
from dnsproxy.ip_mode.selection import Selection


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_it_is_a_policy_and_its_binding_of_one_version(version: str) -> None:
    policy, binding = yaml.safe_load_all(format_policy(version, Selection()))
    assert {one["apiVersion"] for one in (policy, binding)} == {f"admissionregistration.k8s.io/{version}"}
    assert binding["spec"] == {"policyName": policy["metadata"]["name"]}
    assert policy["metadata"]["name"] == binding["metadata"]["name"] == NAME


def test_it_matches_updates_of_the_status_of_services_alone_and_blocks_none() -> None:
    spec = make_policy("v1", Selection())[0]["spec"]
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["UPDATE"], ["services/status"])
    assert spec["failurePolicy"] == "Ignore"


def test_a_class_is_quoted_so_that_no_text_becomes_an_expression() -> None:
    spec = make_policy("v1", Selection(('a"] + ["b', "example.org/lb")))[0]["spec"]
    (variable,) = [one for one in spec["variables"] if one["name"] == "loadBalancerClasses"]
    assert variable["expression"] == r'["a\"] + [\"b", "example.org/lb"]'


def test_two_documents_never_share_a_value_so_that_no_anchor_is_printed() -> None:
    assert "&id" not in format_policy("v1", Selection())


def test_a_change_of_one_object_does_not_reach_the_other() -> None:
    policy, binding = make_policy("v1", Selection())
    policy["metadata"]["labels"]["changed"] = "yes"
    policy["metadata"]["name"] = "changed"
    assert (binding["metadata"]["name"], "changed" in binding["metadata"]["labels"]) == (NAME, False)
