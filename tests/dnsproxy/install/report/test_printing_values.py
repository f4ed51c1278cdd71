"""A Corefile in the values of the coredns chart means the same once the chart has rendered it."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.install.report.printing_values import chart_values, format_json, format_yaml
from tests.dnsproxy.corefile.corpus import load_corpus
from tests.dnsproxy.corefile.shapes import corefiles, installed
from tests.dnsproxy.install.report.rendered import meaning, render_chart

UNSAID = [
    pytest.param("(s) {\n errors\n}\n.:53 {\n import s\n}\n", "the snippet 's'", id="a snippet"),
    pytest.param("{$ZONE}:53 {\n errors\n}\n", "a server block", id="a zone out of the environment"),
    pytest.param("tls://.:853 {\n errors\n}\n", "a server block", id="another transport"),
    pytest.param(".:53 example.org:5353 {\n errors\n}\n", "a server block", id="two ports"),
    pytest.param("example.net:5353 example.org:5353 {\n}\n", "several zones", id="several zones on a port of theirs"),
    pytest.param("import a/*\nimport b/*\n.:53 {\n}\n", "a second import", id="two imports between the blocks"),
    pytest.param('.:53 {\n template ANY ANY {\n  answer "a\nb"\n }\n}\n', "a line", id="a quote over two lines"),
    pytest.param(".:53 {\n forward . 192.0.2.1 {\n  import x/*\n }\n}\n", "a line", id="options in another file"),
]


@pytest.mark.parametrize(("text", "what"), UNSAID)
def test_what_the_chart_has_no_value_for_is_refused(text: str, what: str) -> None:
    with pytest.raises(CorefileError, match=what):
        chart_values(parse_corefile(text))


@given(corefiles())
def test_what_the_chart_renders_is_what_the_corefile_says(text: str) -> None:
    corefile = parse_corefile(installed(text).new)
    try:
        values = yaml.safe_load(format_yaml(chart_values(corefile)))
    except CorefileError:
        return
    assert meaning(parse_corefile(render_chart(values))) == meaning(corefile)


def test_most_of_the_corpus_can_be_said_in_chart_values() -> None:
    said = 0
    for shape in load_corpus():
        try:
            chart_values(parse_corefile(installed(shape.text).new))
        except CorefileError:
            continue
        said += 1
    assert said > 0.8 * len(load_corpus())


texts = st.text() | st.lists(
    st.sampled_from(["a", " ", "\n", "\r\n", "\t", "# x", ": ", "- ", "'", '"', "\\", "é"])
).map("".join)


@given(texts.filter(lambda text: text.isprintable() or "\n" in text))
def test_yaml_and_json_give_back_every_text(text: str) -> None:
    value = {"a": {"key: with": [text]}}
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert yaml.safe_load(format_yaml(value)) == value
    assert json.loads(format_json(value)) == value
