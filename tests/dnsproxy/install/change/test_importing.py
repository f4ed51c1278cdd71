"""The text of the imported key, and text of others around it; test_planning.py tests the edits of all methods."""

from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.corefile.stanza import BEGIN, END
from dnsproxy.install.change.importing import Surroundings, find_surroundings, format_own_file

OURS = ["example.org {", "    errors", "}"]


def test_a_file_of_ours_is_nobody_elses() -> None:
    text = format_own_file(OURS)
    assert text == f"{BEGIN}\nexample.org {{\n    errors\n}}\n{END}\n"
    assert find_surroundings(text, "here").empty


@pytest.mark.parametrize(
    ("before", "after"),
    [("# mine\n", ""), ("", "other {\n}\n"), ("a {\n}\n\n", "# no line end"), ("# BEGIN switchbacks\n", "")],
    ids=["before", "after", "both", "another word"],
)
def test_what_others_have_in_it_stays(before: str, after: str) -> None:
    around = Surroundings(before, after)
    assert not around.empty
    text = format_own_file(OURS, around)
    assert find_surroundings(text, "here") == around
    assert format_own_file(["b {", "}"], find_surroundings(text, "here")).startswith(before)


def test_markers_of_an_older_wording_are_markers() -> None:
    assert find_surroundings("# BEGIN switchback: other words\nx\n  #END switchback", "here").empty


@pytest.mark.parametrize(
    "text",
    [
        *("", "example.org {\n}\n", f"{BEGIN}\n", f"{END}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}\n{BEGIN}\n{END}\n"),
        f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n",
        f"x {BEGIN}\n{END}\n",
        "# BEGIN switchback-other\n# END switchback\n",
    ],
    ids=["empty", "none", "begin", "end", "wrong order", "two begins", "two files", "behind a word", "another name"],
)
def test_damaged_markers_are_refused_with_the_place(text: str) -> None:
    with pytest.raises(ChangeRefused, match="here: its markers are damaged"):
        find_surroundings(text, "here")
