"""The page of one name."""

from __future__ import annotations

from dataclasses import replace

from dnsproxy.admin.explain import explain
from dnsproxy.admin.pages.explain import format_explanation_page
from dnsproxy.hostnames.claims import Rejection
from dnsproxy.hostnames.registry import Registry
from dnsproxy.tap.recent import AskedBy
from tests.dnsproxy.admin.pages.test_lists import EVIL, claim, registry_of


def page_of(registry: Registry, name: str, **more: object) -> str:
    return str(format_explanation_page(explain(registry, name, ttl=5, **more)))  # type: ignore[arg-type]


def test_an_answer_is_shown_with_its_rule_and_origin() -> None:
    page = page_of(
        registry_of(
            [
                claim("a.example.org", ingress_class="nginx"),
                claim("a.example.org", "late", created="2026-01-01T00:00:00Z"),
            ]
        ),
        "A.example.org",
    )
    for told in (
        "is answered with",
        "192.0.2.10",
        "the exact name",
        "Ingress shop/web",
        "nginx",
        "--target 192.0.2.10",
    ):
        assert told in page
    assert "Ingress shop/late" not in page.partition("Claims that do not answer it")[0]


def test_a_wildcard_is_named() -> None:
    page = page_of(registry_of([claim("*.example.org")]), "a.example.org")
    assert "the wildcard *.example.org, which covers one label" in page


def test_a_missing_answer_is_shown_with_its_reasons() -> None:
    rejections = [Rejection(claim("x").origin, EVIL)]
    page = page_of(registry_of([]), EVIL, rejections=rejections, notes=[EVIL])
    assert "is not in the table" in page
    assert "Rejected" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "no object claims it" in page_of(registry_of([]), "a.example.org")


def test_who_asked_is_shown_and_escaped_and_nothing_without_a_record() -> None:
    """The same lines as `dnsproxy explain`."""
    explanation = explain(registry_of([]), "a.example.org", ttl=5)
    assert "Asked by" not in str(format_explanation_page(explanation))
    asked = (AskedBy("192.0.2.7", 2, "2026-11-26T12:00:00.000Z", "<b>"),)
    page = str(format_explanation_page(replace(explanation, asked_by=asked)))
    assert "192.0.2.7 for &lt;b&gt;, 2 times in the last minute" in page
    assert "no client in the last minute" in str(format_explanation_page(replace(explanation, asked_by=())))
