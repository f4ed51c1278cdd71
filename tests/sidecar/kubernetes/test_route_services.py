"""The annotation that says whose names a Service answers for."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.route_services import gateway_subject, ingress_class_subject, parse_subjects


@pytest.mark.parametrize(
    ("text", "subjects"),
    [
        pytest.param("ingressclass/nginx", ("ingressclass/nginx",), id="a class"),
        pytest.param("gateway/web/public", ("gateway/web/public",), id="a Gateway"),
        pytest.param(" ingressclass/a , gateway/b/c ", ("ingressclass/a", "gateway/b/c"), id="two"),
        pytest.param("ingressclass/a,ingressclass/a", ("ingressclass/a",), id="each once"),
        pytest.param("ingressclass/nginx.example.org", ("ingressclass/nginx.example.org",), id="a name with dots"),
    ],
)
def test_it_is_a_list_of_subjects(text: str, subjects: tuple[str, ...]) -> None:
    assert parse_subjects(text) == subjects


@pytest.mark.parametrize(
    "text",
    ["", ",", "nginx", "ingressclass/", "ingressclass/a/b", "gateway/web", "gateway/a/b/c", "gateway//b", "Gateway/a/b",
     "ingressclass/A", "ingressclass/-a", "ingressclass/a,", "ingressclass/a;b", "gatewayclass/a", "gateway/a.b/c",
     "ingressclass/" + "a." * 130 + "a", "ingressclass/a\nb", "ingressclass/\uff41"],
)  # fmt: skip
def test_anything_else_is_an_error_that_quotes_it(text: str) -> None:
    with pytest.raises(ValueError, match="is not ingressclass/NAME or gateway/NAMESPACE/NAME"):
        parse_subjects(text)


NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)


@given(st.lists(st.builds(ingress_class_subject, NAMES) | st.builds(gateway_subject, NAMES, NAMES), min_size=1))
def test_every_subject_can_be_written_and_read(subjects: list[str]) -> None:
    assert parse_subjects(",".join(subjects)) == tuple(dict.fromkeys(subjects))


@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    with suppress(ValueError):
        assert ",".join(parse_subjects(text)).isascii()
