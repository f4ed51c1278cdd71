"""The page of one name: the answer to a query and the reason for it, or why the table has no answer.

The law: pure; it has the content of `dnsproxy explain`.
"""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from dnsproxy.admin.explain import LONGEST, Explanation, answer_facts, asked_by_lines, verdict_words
from dnsproxy.admin.listing import Row
from sidecar.admin.page.document import Fact, Level, facts, notes, search_form, section, table, text
from sidecar.admin.page.markup import NOTHING, html, joined


def format_question(asked: str) -> Markup:
    """The form with the field for a name."""
    return search_form("why", label="Explain a name", field="name", asked=asked, longest=LONGEST, button="Explain")


def format_explanation_page(explanation: Explanation) -> Markup:
    """The content of the page."""
    answer = explanation.answer
    return joined((format_question(explanation.name), _verdict(explanation), *_parts(explanation, answer)))


def _verdict(explanation: Explanation) -> Markup:
    answer = explanation.answer
    if answer is None:
        said = html("<strong>{}</strong> is not in the table: queries for it are forwarded.", explanation.name)
        return html('<p class="verdict" data-level="warn">{}</p>', said)
    addresses = joined((html("<code>{}</code>", one) for one in answer.addresses), ", ")
    if answer.forwarded:
        said = html("<strong>{}</strong> {}.", explanation.name, verdict_words(answer, ""))
        return html('<p class="verdict" data-level="warn">{}</p>', said)
    said = html("<strong>{}</strong> is answered with {}{}.", explanation.name, addresses, explanation.condition)
    return html('<p class="verdict" data-level="ok">{}</p>', said)


def _parts(explanation: Explanation, answer: Row | None) -> Iterator[Markup]:
    yield notes(explanation.notes)
    if answer is not None:
        yield section("The answer", facts(_answer_facts(answer, explanation)), key="answer")
    if explanation.reasons:
        reasons = joined(html("<li>{}</li>", text(reason)) for reason in explanation.reasons)
        yield section("Why there is no answer", html("<ul>{}</ul>", reasons), key="reasons")
    if explanation.left_out:
        rows = [
            [html("{}", one.hostname), text(str(one.origin)), text(one.class_name or "-"), text(one.reason)]
            for one in explanation.left_out
        ]
        headings = ("Name", "Claimed by", "Class", "Reason")
        yield section("Excluded", table("Claims that do not answer it", headings, rows, empty=""), key="left-out")
    if explanation.rejected:
        rows = [[text(line)] for line in explanation.rejected]
        yield section(
            "Rejected",
            table("Hosts and lines that mention it", ("Object or line, and reason",), rows, empty=""),
            key="skipped",
        )
    if asked := list(asked_by_lines(explanation)):
        yield section(
            "Asked by", html("<ul>{}</ul>", joined(html("<li>{}</li>", text(one)) for one in asked)), key="asked-by"
        )
    yield NOTHING


def _answer_facts(answer: Row, explanation: Explanation) -> Iterator[Fact]:
    for name, fact in answer_facts(answer, explanation):
        level = Level.WARN if name == "leads" else Level.PLAIN
        yield Fact(f"{name[0].upper()}{name[1:]}", fact, level)
