"""nft's messages become exceptions."""

from __future__ import annotations

import pytest

from wholeip.ruleset.nft_errors import Busy, NftFailed, NoNfTables, NotPermitted, Refused, judge_failure

SCRIPT = "add table inet x\n\tadd element inet x m { 1.2.3.4 : 5.6.7.8 }\nadd element inet x " + "m" * 1000
SCRIPT += "\nchain prerouting {\n\tfib saddr type local drop"


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        pytest.param("Operation not permitted (you must be root)\nnetlink: Error: cache\n", NotPermitted, id="no root"),
        pytest.param(
            "netlink: Error: cache initialization failed: Operation not permitted\n", NotPermitted, id="no capability"
        ),
        pytest.param(
            "/dev/stdin:1:1-9: Error: Could not process rule: Operation not supported\n", NoNfTables, id="no family"
        ),
        pytest.param("nft: Unable to initialize Netlink socket: Protocol not supported\n", NoNfTables, id="no netlink"),
        pytest.param("/dev/stdin:1:1-9: Error: Could not process rule: Device or resource busy\n", Busy, id="busy"),
        pytest.param("netlink: Error: No buffer space available\n", Busy, id="no buffer"),
        pytest.param("netlink: Error: Interrupted system call\n", Busy, id="interrupted"),
        pytest.param("/dev/stdin:2:1-9: Error: Could not process rule: File exists\n", Refused, id="exists"),
        pytest.param("/dev/stdin:2:1-9: Error: syntax error, unexpected newline\n", Refused, id="syntax"),
        pytest.param("Error: No such file or directory\nlist table inet x\n", Refused, id="not there"),
        pytest.param(
            "/dev/stdin:4:1-9: Error: Could not process rule: No such file or directory\n",
            NoNfTables,
            id="no such chain",
        ),
        pytest.param(
            "/dev/stdin:5:1-9: Error: Could not process rule: No such file or directory\n",
            NoNfTables,
            id="no such rule",
        ),
        pytest.param(
            "/dev/stdin:2:1-9: Error: Could not process rule: No such file or directory\n",
            Refused,
            id="no such element",
        ),
        pytest.param("", Refused, id="nothing"),
        pytest.param("\n\n", Refused, id="empty lines"),
        pytest.param("\x00\ufffd", Refused, id="rubbish"),
        pytest.param("Segmentation fault\n", Refused, id="not of nft"),
    ],
)
def test_a_failure_is_named(stderr: str, expected: type[NftFailed]) -> None:
    error = judge_failure(stderr, SCRIPT)
    assert type(error) is expected
    assert str(error)
    assert error.transient == (expected is Busy)


@pytest.mark.parametrize(
    ("place", "line"),
    [
        pytest.param("/dev/stdin:1:1-9", "add table inet x", id="first"),
        pytest.param("/dev/stdin:2:5-9", "add element inet x m { 1.2.3.4 : 5.6.7.8 }", id="without what surrounds it"),
        pytest.param("/dev/stdin:2:5", "add element inet x m { 1.2.3.4 : 5.6.7.8 }", id="one column"),
        pytest.param("/dev/stdin:0:5-9", "", id="before the first"),
        pytest.param("/dev/stdin:99:5-9", "", id="after the last"),
    ],
)
def test_what_is_refused_is_told_with_its_line(place: str, line: str) -> None:
    error = judge_failure(f"{place}: Error: Could not process rule: File exists\nadd\n^^^\n", SCRIPT)
    assert isinstance(error, Refused)
    assert error.message == "Could not process rule: File exists"
    assert error.line == line
    assert str(error) == (f"{error.message}: {line}" if line else error.message)


def test_a_long_line_is_shortened() -> None:
    error = judge_failure("/dev/stdin:3:1-9: Error: syntax error\n", SCRIPT)
    assert len(str(error)) < 300
    assert str(error).endswith("...")
