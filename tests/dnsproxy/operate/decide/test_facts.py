"""Subjects as text."""

from __future__ import annotations

import pytest

from dnsproxy.operate.decide.facts import Subject, parse_subject


@pytest.mark.parametrize("text", ["ingressclass/nginx", "gateway/infra/web", "ingressclass/nginx.example.org"])
def test_a_subject_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_subject(text)) == text


def test_a_gateway_has_a_namespace_and_a_class_has_none() -> None:
    assert parse_subject("gateway/infra/web") == Subject("web", "infra")
    assert parse_subject("ingressclass/web") == Subject("web")


@pytest.mark.parametrize("text", ["", "nginx", "gateway/web", "ingressclass/a,ingressclass/b"])
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not ingressclass/NAME|too many values"):
        parse_subject(text)
