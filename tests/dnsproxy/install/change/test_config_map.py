"""Changes of ConfigMaps: the one write of each, how it is shown, and several of them as one edit."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from dnsproxy.cluster_dns.found import Source
from dnsproxy.install.change.config_map import (
    MADE,
    OBJECT,
    ConfigMapChange,
    Edits,
    Entry,
    format_change,
    format_diffs,
    keys_left,
    made_entry,
    make_write,
    merge_changes,
)
from sidecar.kubernetes.structs.metadata import Metadata
from sidecar.kubernetes.structs.workload import ConfigMap


def source(data: Mapping[str, str] | None = None, **annotations: str) -> Source:
    """A ConfigMap that is there."""
    metadata = Metadata("coredns", "kube-system", "77", annotations=annotations or None)
    return Source("kube-system", "coredns", ConfigMap(metadata, dict(data or {}) or None))


ABSENT = Source("kube-system", "coredns-custom", None, optional=True)


def test_a_change_counts_for_the_version_that_was_read_and_names_only_what_changes() -> None:
    entries = (Entry("Corefile", "a", "b"), Entry("same", "x", "x"), Entry("gone", "x", None))
    write = make_write(ConfigMapChange(source(), entries, (Entry("note", None, "z"),)))
    assert (write.method, write.path) == ("PATCH", "/api/v1/namespaces/kube-system/configmaps/coredns")
    assert (write.content_type, write.params) == ("application/merge-patch+json", {"fieldManager": "switchback"})
    assert json.loads(write.content) == {
        "metadata": {"resourceVersion": "77", "annotations": {"note": "z"}},
        "data": {"Corefile": "b", "gone": None},
    }


def test_what_is_not_there_is_made_only_if_it_is_still_not_there() -> None:
    write = make_write(ConfigMapChange(ABSENT, (Entry("a.server", None, "x"),), (made_entry(ABSENT, [OBJECT]),)))
    assert (write.method, write.content_type) == ("PATCH", "application/apply-patch+yaml")
    body = json.loads(write.content)
    assert body["metadata"] == {
        "resourceVersion": "1",
        "name": "coredns-custom",
        "namespace": "kube-system",
        "annotations": {MADE: "object"},
    }
    assert body["data"] == {"a.server": "x"}


def test_what_was_made_for_us_goes_only_as_it_was_read() -> None:
    write = make_write(ConfigMapChange(source(), (Entry("a", "x", None),), removes=True))
    assert write.method == "DELETE"
    assert json.loads(write.content)["preconditions"] == {"resourceVersion": "77"}


def test_names_cannot_leave_their_place_in_the_path() -> None:
    odd = Source("a/b", "../x?y", None)
    assert make_write(ConfigMapChange(odd, ())).path == "/api/v1/namespaces/a%2Fb/configmaps/..%2Fx%3Fy"


@pytest.mark.parametrize(
    ("change", "verb", "changed"),
    [
        (ConfigMapChange(source(), (Entry("a", "x", "y"),)), "patch", True),
        (ConfigMapChange(ABSENT, (Entry("a", None, "y"),)), "create", True),
        (ConfigMapChange(source(), (Entry("a", "x", None),), removes=True), "delete", True),
        (ConfigMapChange(source(), (Entry("a", "x", "x"),)), "patch", False),
        (ConfigMapChange(source(), (), (Entry("n", None, None),)), "patch", False),
        (ConfigMapChange(source(), (), (Entry("n", "x", None),)), "patch", True),
    ],
    ids=["patch", "create", "delete", "no key", "no annotation", "annotation"],
)
def test_the_verb_is_what_rbac_is_asked_for(change: ConfigMapChange, verb: str, *, changed: bool) -> None:
    assert (change.verb, change.changed) == (verb, changed)


def test_the_diff_has_a_file_for_each_key_and_one_for_the_annotations() -> None:
    change = ConfigMapChange(source(), (Entry("a", None, "x\n"), Entry("b", "y\n", "y\n")), (Entry("n", "1", "2"),))
    assert format_change(change).splitlines() == [
        "--- a/kube-system/coredns/a",
        "+++ b/kube-system/coredns/a",
        "@@ -0,0 +1 @@",
        "+x",
        "--- a/kube-system/coredns/metadata.annotations",
        "+++ b/kube-system/coredns/metadata.annotations",
        "@@ -1 +1 @@",
        "-n: 1",
        "+n: 2",
    ]


def test_keys_of_others_and_binary_ones_are_left() -> None:
    there = ConfigMap(Metadata("x"), {"a": "1", "b": "2"}, {"c": "AA=="})
    change = ConfigMapChange(Source("n", "x", there), (Entry("a", "1", None), Entry("d", None, "4")))
    assert keys_left(change) == {"b", "c", "d"}


def test_a_config_map_is_one_write_whatever_is_changed_in_it() -> None:
    first = ConfigMapChange(source(), (Entry("a", "1", "2"), Entry("b", "1", "1")), (Entry("n", None, "x"),))
    second = ConfigMapChange(source(), (Entry("b", "1", None),), (Entry("n", None, "y"), Entry("m", "1", None)))
    other = ConfigMapChange(ABSENT, (Entry("c", None, "3"),))
    merged = merge_changes([first, other], [second])
    assert [str(change.source) for change in merged] == ["kube-system/coredns", "kube-system/coredns-custom"]
    assert merged[0].data == (Entry("a", "1", "2"), Entry("b", "1", None))
    assert merged[0].annotations == (Entry("n", None, "y"), Entry("m", "1", None))


def test_what_goes_goes_whoever_says_so() -> None:
    gone = ConfigMapChange(source(), (Entry("a", "1", None),), removes=True)
    assert merge_changes([ConfigMapChange(source(), ())], [gone])[0].removes


def test_what_changes_nothing_is_no_change_and_still_there() -> None:
    same = Edits(None, (ConfigMapChange(source(), (Entry("a", "1", "1"),)),))
    assert not same.changed
    assert format_diffs(same) == ""
    both = Edits(None, (*same.changes, ConfigMapChange(ABSENT, (Entry("a", None, "1"),))))
    assert both.changed
    assert format_diffs(both).startswith("--- a/kube-system/coredns-custom/a")
