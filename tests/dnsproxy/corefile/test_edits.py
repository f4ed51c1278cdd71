"""Edits touch the place they name, and nothing else."""

from __future__ import annotations

import pytest

from dnsproxy.corefile.edits import Place, cut, insert_before, replace_word
from dnsproxy.corefile.model import CorefileError, format_corefile
from dnsproxy.corefile.parser import parse_corefile

TEXT = "# top\r\n.:53 {\r\n\tlog  # why\r\n\terrors\r\n}\r\n# end"


def test_a_text_goes_right_in_front_of_a_word() -> None:
    corefile = parse_corefile(TEXT)
    log = corefile.blocks[0].directives[0]
    assert format_corefile(insert_before(corefile, log.index, "whoami\r\n\t")) == TEXT.replace("log", "whoami\r\n\tlog")


def test_a_word_is_written_differently() -> None:
    corefile = parse_corefile(TEXT)
    changed = replace_word(corefile, corefile.blocks[0].keys[0].index, ".:1053")
    assert format_corefile(changed) == TEXT.replace(".:53", ".:1053")
    assert changed.blocks[0].keys[0].origin.port == 1053


def test_what_lies_between_two_places_is_cut() -> None:
    corefile = parse_corefile(TEXT)
    log, errors = corefile.blocks[0].directives
    changed = cut(corefile, Place(log.index, 0), Place(errors.index, 0))
    assert format_corefile(changed) == TEXT.replace("\r\n\tlog", "")


def test_a_cut_may_reach_behind_the_last_word() -> None:
    corefile = parse_corefile(TEXT)
    assert format_corefile(cut(corefile, Place(1, 0), Place(len(corefile.tokens), 2))) == "# top\r\n.:53# end"


def test_an_edit_that_coredns_would_refuse_is_refused() -> None:
    corefile = parse_corefile(TEXT)
    with pytest.raises(CorefileError, match="closes nothing"):
        replace_word(corefile, corefile.blocks[0].directives[0].index, "log }")
    with pytest.raises(CorefileError, match="not a key"):
        replace_word(corefile, corefile.blocks[0].keys[0].index, ".:")
