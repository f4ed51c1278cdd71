"""A difference is a few rows for a person and the whole diff for a program."""

from __future__ import annotations

from dataclasses import replace

from dnsproxy.install.change.coverage import Coverage
from dnsproxy.install.change.drift import Drift
from dnsproxy.install.change.rewrite_choice import ADVICE
from dnsproxy.install.change.rewrite_coverage import RewriteCoverage
from dnsproxy.install.report.comparison import (
    format_coverage,
    format_drift,
    format_names,
    rows_of_coverage,
    rows_of_drift,
    rows_of_names,
)
from dnsproxy.install.report.status_document import format_document
from dnsproxy.install.report.status_report import format_rows
from dnsproxy.install.report.verdict import judge
from sidecar.values.diffs import format_diff
from tests.dnsproxy.install.report.test_verdict import MISSING, TARGET, YES, report, with_stanza


def test_the_rows_of_a_drift_are_its_changed_lines() -> None:
    diff = format_diff("a\nb\nc\n", "a\nx\nc\n", "coredns/Corefile")
    assert [tuple(row) for row in rows_of_drift(Drift(TARGET, diff))] == [
        ("up to date", "no", "Corefile in ConfigMap kube-system/coredns: an install would write"),
        ("", "", "-b"),
        ("", "", "+x"),
    ]
    assert list(rows_of_drift(None)) == []


def test_a_long_difference_is_cut_in_the_table_and_whole_in_the_document() -> None:
    diff = format_diff("", "".join(f"line {number}\n" for number in range(100)), "coredns/Corefile")
    rows = list(rows_of_drift(Drift(TARGET, diff)))
    assert (len(rows), rows[-1].detail) == (22, "and 80 more lines")
    assert format_drift(Drift(TARGET, diff)) == {
        "target": {"config_map": "kube-system/coredns", "key": "Corefile"},
        "diff": diff,
        "refusal": "",
    }
    assert format_drift(None) is None


def test_a_refusal_stands_in_place_of_the_difference() -> None:
    assert [row.detail for row in rows_of_drift(Drift(TARGET, "", "why"))] == ["why"]


def test_missing_zones_are_a_fault_a_note_or_unknown() -> None:
    assert [tuple(row) for row in rows_of_coverage(MISSING)] == [
        ("zones", "no", "example.net missing, for a.example.net"),
        ("", "", "compared with the hosts of the cluster's Ingresses"),
    ]
    assert next(rows_of_coverage(replace(MISSING, chosen=True))).state == "part"
    assert next(rows_of_coverage(Coverage(unknown="not allowed"))).state == "?"
    assert list(rows_of_coverage(Coverage())) == []
    assert format_coverage(MISSING)["hosts"] == ["a.example.net"]


NAMES = RewriteCoverage(2, ("new.org",), ("old.org",), 7, 3, (("theirs.org", "of others"),), "a pod is silent")


def test_names_are_rows_for_a_person_and_values_for_a_program() -> None:
    assert [tuple(row) for row in rows_of_names(NAMES)] == [
        ("names", "no", "2 are rewritten; 1 missing: new.org; 1 no longer wanted: old.org"),
        ("", "?", "names may be missing here: a pod is silent"),
        ("", "part", f"7 are left out beyond 500 lines: {ADVICE}"),
        ("", "part", "theirs.org is left out: of others"),
        ("", "", "3 have plain addresses and no Service: they are answered as before"),
    ]
    assert format_names(NAMES) == {
        "standing": 2,
        "missing": ["new.org"],
        "gone": ["old.org"],
        "left_out": 7,
        "plain": 3,
        "refused": {"theirs.org": "of others"},
        "unknown": "a pod is silent",
    }


def test_names_that_are_all_there_are_one_row() -> None:
    assert [tuple(row) for row in rows_of_names(RewriteCoverage(2))] == [("names", "ok", "2 are rewritten")]
    assert (list(rows_of_names(None)), format_names(None)) == ([], None)


def test_many_names_of_others_are_cut_in_the_table() -> None:
    refused = tuple((f"n{number}.org", "of others") for number in range(30))
    rows = list(rows_of_names(RewriteCoverage(refused=refused)))
    assert (len(rows), rows[-1].detail) == (22, "and 10 more")


def test_nothing_in_a_difference_drives_a_terminal() -> None:
    told = replace(report(with_stanza(), (YES,)), drift=Drift(TARGET, "+\x1b[31m\n"), coverage=MISSING)
    assert not any("\x1b" in row.detail for row in format_rows(told))
    document = format_document(told, judge(told))
    assert (document["drift"]["diff"], document["coverage"]["zones"]) == ("+\x1b[31m\n", ["example.net"])
