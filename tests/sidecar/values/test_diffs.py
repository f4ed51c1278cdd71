"""Diffs show the change of each line, and patch(1) can apply them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.values.diffs import format_diff


def test_a_diff_says_what_becomes_of_each_line_and_where_a_line_end_is_missing() -> None:
    diff = format_diff(b"\xff a", b"\xff a\n192.0.2.10 app.example.org\n", "etc/hosts")
    assert diff.encode(errors="surrogateescape").splitlines() == [
        b"--- a/etc/hosts",
        b"+++ b/etc/hosts",
        b"@@ -1 +1,2 @@",
        b"-\xff a",
        b"\\ No newline at end of file",
        b"+\xff a",
        b"+192.0.2.10 app.example.org",
    ]


@pytest.mark.parametrize("text", ["", "a", "a\n", b"\xff", b"b\n"])
def test_what_does_not_change_has_none(text: str | bytes) -> None:
    assert format_diff(text, text, "Corefile") == ""


def test_a_text_and_its_octets_have_one_diff() -> None:
    assert format_diff("a\r\nb", "a\r\nc", "x") == format_diff(b"a\r\nb", b"a\r\nc", "x")


TEXTS = st.text(st.sampled_from("ab\r\n\f\x1c\u2028 {}"), max_size=30)


@pytest.mark.peer("patch")
@settings(max_examples=25)
@given(TEXTS, TEXTS)
def test_patch_makes_the_new_text_of_the_old(tmp_path_factory: pytest.TempPathFactory, old: str, new: str) -> None:
    file: Path = tmp_path_factory.mktemp("diff") / "file"
    file.write_bytes(old.encode())
    diff = format_diff(old, new, "file").encode()
    if diff:
        command = ["patch", "--binary", "--silent", "--strip=1", "--posix", str(file)]
        subprocess.run(command, input=diff, check=True, capture_output=True)
    assert (file.read_bytes() if file.exists() else b"") == new.encode()
