"""The versions in the status, as rows and as JSON."""

from __future__ import annotations

import pytest

from dnsproxy.install.report.status_document import format_document
from dnsproxy.install.report.status_report import format_rows
from dnsproxy.install.report.verdict import StatusReport, judge
from dnsproxy.install.report.version_rows import ProgramBuilds, Versions, format_versions, rows_of_versions
from sidecar.values.build import UNKNOWN, Build
from tests.dnsproxy.install.report.test_verdict import YES, report, with_stanza

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ONE = Build("1.0.0", COMMIT, "3.13.1")
OLDER = Build("0.9.0", "f" * 40, "3.13.1")
FIRST = "version   this command: 1.0.0, revision 0123456789ab"


def with_versions(versions: Versions | None) -> StatusReport:
    there = report(with_stanza(), (YES,), (YES,))
    return StatusReport(there.found, there.choice, there.traces, there.loaded, there.answers, versions=versions)


@pytest.mark.parametrize(
    ("programs", "rows"),
    [
        pytest.param([], [], id="nothing runs"),
        pytest.param(
            [ProgramBuilds("dnsproxy serve", 2, {"a": ONE, "b": Build("1.0.0", COMMIT, "3.11.9")})],
            ["version ok dnsproxy serve: 1.0.0, revision 0123456789ab, 2 of 2 pods"],
            id="the same, on another Python too",
        ),
        pytest.param(
            [ProgramBuilds("dnsproxy serve", 900, {"a": ONE, "b": OLDER, "c": ONE})],
            [
                "version ok dnsproxy serve: 1.0.0, revision 0123456789ab, 2 of 900 pods",
                "version part dnsproxy serve: 0.9.0, revision ffffffffffff, 1 of 900 pods; not that of this command",
            ],
            id="in the middle of an upgrade",
        ),
        pytest.param(
            [ProgramBuilds("proxy", 1, {"a": Build("1.0.0", UNKNOWN, "3.13.1")})],
            ["version ok proxy: 1.0.0, revision unknown, 1 of 1 pods"],
            id="no revision is no difference",
        ),
        pytest.param(
            [ProgramBuilds("dnsproxy operate", 1, {}, {"a": "no answer"})],
            ["version ? dnsproxy operate: pod a: no answer"],
            id="not read",
        ),
    ],
)
def test_a_row_has_a_build_of_a_program(programs: list[ProgramBuilds], rows: list[str]) -> None:
    assert [" ".join(one) for one in rows_of_versions(Versions(ONE, programs))] == [FIRST.replace("   ", "  "), *rows]


def test_what_was_not_asked_is_not_stated() -> None:
    assert list(rows_of_versions(None)) == []
    assert format_versions(None) is None
    (_, row) = rows_of_versions(Versions(ONE, unknown="no right"))
    assert row == ("version", "?", "of the running programs: no right")


def test_json_has_a_pod_with_its_build_or_the_reason_for_none() -> None:
    programs = [ProgramBuilds("proxy", 3, {"a": ONE, "b": OLDER}, {"c": "no answer"})]
    assert format_versions(Versions(ONE, programs)) == {
        "command": {"version": "1.0.0", "revision": COMMIT, "python": "3.13.1"},
        "programs": [
            {
                "program": "proxy",
                "ready": 3,
                "pods": [
                    {"pod": "a", **ONE.labels(), "differs": False, "unknown": ""},
                    {"pod": "b", **OLDER.labels(), "differs": True, "unknown": ""},
                    {
                        "pod": "c",
                        "version": None,
                        "revision": None,
                        "python": None,
                        "differs": None,
                        "unknown": "no answer",
                    },
                ],
            }
        ],
        "unknown": "",
    }


def test_a_difference_is_shown_and_changes_no_verdict() -> None:
    same = with_versions(Versions(ONE, [ProgramBuilds("proxy", 1, {"a": ONE})]))
    differs = with_versions(Versions(ONE, [ProgramBuilds("proxy", 1, {"a": OLDER})]))
    unread = with_versions(Versions(ONE, [ProgramBuilds("proxy", 1, {}, {"a\x1b": "\x1b[2J"})]))
    assert judge(same) == judge(differs) == judge(unread) == judge(with_versions(None))
    assert [row.state for row in format_rows(differs) if row.what == "version"] == ["", "part"]
    assert "\x1b" not in "".join(row.detail for row in format_rows(unread))
    assert format_document(differs, judge(differs))["versions"]["programs"][0]["pods"][0]["differs"] is True
