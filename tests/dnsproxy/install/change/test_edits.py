"""Several edits of a cluster as one."""

from __future__ import annotations

from dnsproxy.install.change.config_map import ConfigMapChange, Edits, Entry, format_diffs, merge_changes
from tests.dnsproxy.install.change.test_config_map import ABSENT, source


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
