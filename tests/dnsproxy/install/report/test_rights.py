"""The RBAC that a plan takes."""

from __future__ import annotations

import yaml

from dnsproxy.cluster_dns.found import Source
from dnsproxy.cluster_dns.requests import CONFIG_MAP, DEPLOYMENT, INGRESS, SERVICE, Request
from dnsproxy.install.change.config_map import MADE, OBJECT, ConfigMapChange, Entry
from dnsproxy.install.report.rights import WATCH_NAME, Grant, format_roles, grants_of, make_roles, watch_grants_of
from tests.dnsproxy.install.change.test_config_map import ABSENT, source

ASKED = [
    Request(SERVICE, "kube-system", "kube-dns"),
    Request(DEPLOYMENT, "kube-system"),
    Request(CONFIG_MAP, "kube-system", "coredns"),
    Request(CONFIG_MAP, "kube-system", "coredns-custom"),
    Request(SERVICE, "switchback", "dnsproxy"),
    Request(INGRESS, ""),
]


def rules(*changes: ConfigMapChange, asked: list[Request] = ASKED) -> dict[str, list[dict[str, object]]]:
    """The rules by the namespace they are for, `` for the whole cluster."""
    roles = make_roles(grants_of(asked, changes))
    return {role["metadata"].get("namespace", ""): role["rules"] for role in roles}


def test_each_namespace_has_a_role_and_what_is_asked_everywhere_a_cluster_role() -> None:
    assert [role["kind"] for role in make_roles(grants_of(ASKED, []))] == ["Role", "Role", "ClusterRole"]
    assert rules()[""] == [{"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": ["list"]}]


def test_what_can_be_named_is_named_and_a_list_cannot() -> None:
    found = rules()["kube-system"]
    assert {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]} in found
    named = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["coredns", "coredns-custom"]}
    assert {**named, "verbs": ["get"]} in found


def test_only_what_is_written_may_be_written() -> None:
    found = rules(ConfigMapChange(ABSENT, (Entry("a", None, "b"),)))["kube-system"]
    written = [rule for rule in found if rule["verbs"] != ["get"] and rule["resources"] == ["configmaps"]]
    assert written == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["coredns-custom"],
            "verbs": ["get", "patch", "create", "delete"],
        }
    ]


def test_what_is_installed_already_may_be_written_all_the_same() -> None:
    """The rights are the same on the first day and on the second."""
    unchanged = rules(ConfigMapChange(source(), (Entry("a", "x", "x"),)))
    assert unchanged == rules(ConfigMapChange(source(), (Entry("a", "x", "y"),)))


def test_a_config_map_that_an_install_created_may_be_deleted_and_no_other() -> None:
    entries = (Entry("a", "x", "y"),)
    made = rules(ConfigMapChange(source(None, **{MADE: OBJECT}), entries), asked=[])["kube-system"]
    theirs = rules(ConfigMapChange(source(), entries), asked=[])["kube-system"]
    assert (made[0]["verbs"], theirs[0]["verbs"]) == (["patch", "delete"], ["patch"])


def test_what_goes_may_be_deleted() -> None:
    found = rules(ConfigMapChange(source(), (Entry("a", "x", None),), removes=True), asked=[])["kube-system"]
    assert found[0]["verbs"] == ["patch", "delete"]


def test_who_watches_lists_one_object_by_its_name_and_makes_events_beside_it() -> None:
    roles = make_roles(watch_grants_of(ASKED, [ConfigMapChange(source(), ())]), WATCH_NAME)
    # Nobody follows a hundred thousand Ingresses for their hosts' zones.
    assert [role["metadata"] for role in roles] == [
        {"name": WATCH_NAME, "namespace": "kube-system"},
        {"name": WATCH_NAME, "namespace": "switchback"},
    ]
    following = ["list", "watch"]
    assert roles[0]["rules"] == [
        {"apiGroups": [""], "resources": ["services"], "resourceNames": ["kube-dns"], "verbs": following},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": following},
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["coredns", "coredns-custom"],
            "verbs": following,
        },
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
    ]


def test_the_text_is_yaml_of_the_same_whatever_the_names() -> None:
    odd = Source("kube-system", "no: {name", None)
    grants = grants_of([], [ConfigMapChange(odd, ())])
    assert list(yaml.safe_load_all(format_roles(grants))) == make_roles(grants)
    assert format_roles(grants).startswith("---\n")
    assert make_roles([Grant("n", "", "services", "b", "get"), Grant("n", "", "services", "a", "get")])[0]["rules"] == [
        {"apiGroups": [""], "resources": ["services"], "resourceNames": ["a", "b"], "verbs": ["get"]}
    ]
