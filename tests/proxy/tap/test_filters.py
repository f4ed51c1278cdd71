"""Which connections a listener gets."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tap.ended import Ending, Outcome
from proxy.tap.filters import TapFilter, format_filter, parse_ending, parse_filter, parse_route_part
from sidecar.values.networks import parse_network
from tests.proxy.tap.test_ended import event


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, True, id="everything"),
        pytest.param({"client": ""}, True, id="an empty field"),
        pytest.param({"client": "192.0.2.0/24"}, True, id="its network"),
        pytest.param({"client": "198.51.100.1,192.0.2.7"}, True, id="one of two clients"),
        pytest.param({"client": "198.51.100.1"}, False, id="another client"),
        pytest.param({"route": ":8443"}, True, id="its port"),
        pytest.param({"route": ":8080"}, False, id="another port"),
        pytest.param({"end": "closed"}, True, id="its end"),
        pytest.param({"end": "no backend,closed"}, True, id="one of two ends"),
        pytest.param({"end": "backend-reset"}, False, id="another end"),
        pytest.param({"end": "closed", "client": "192.0.2.7", "route": ":8443"}, True, id="all fields"),
        pytest.param({"end": "closed", "client": "192.0.2.7", "route": ":1"}, False, id="all fields but one"),
    ],
)
def test_fields_are_joined_and_their_values_are_alternatives(fields: dict[str, str], expected: bool) -> None:
    assert parse_filter(fields).wants(event()) is expected


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        pytest.param({"client": "app.example.org"}, "is not an address or network", id="a name as client"),
        pytest.param({"client": "192.0.2.0/99"}, "is not an address or network", id="a prefix that is none"),
        pytest.param({"end": "melted"}, "is not an end; it is one of closed, client reset", id="no such end"),
        pytest.param({"route": "\x1b[2J"}, "is not a part of a listening address", id="control characters"),
        pytest.param({"name": "x"}, "is not a field; there are client, route, end", id="no such field"),
    ],
)
def test_a_bad_field_is_refused_in_one_line(fields: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        parse_filter(fields)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("text", ["", " ", "a,b", "\n"])
def test_a_part_of_a_route_has_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a part of a listening address"):
        parse_route_part(text)


@pytest.mark.parametrize("ending", Ending)
def test_an_end_may_be_written_without_quotation_marks(ending: Ending) -> None:
    assert parse_ending(ending.value.replace(" ", "-").upper()) is ending
    assert TapFilter(ends=(ending,)).wants(event(Outcome(ending)))


@given(
    st.lists(st.ip_addresses().map(lambda one: parse_network(str(one))), max_size=3),
    st.lists(st.text("0123456789.:[]abcdef", min_size=1, max_size=20), max_size=3),
    st.lists(st.sampled_from(Ending), max_size=3),
)
def test_a_filter_in_a_query_is_the_same_filter(clients: list[object], routes: list[str], ends: list[Ending]) -> None:
    wanted = TapFilter(tuple(clients), tuple(routes), tuple(ends))  # type: ignore[arg-type]  # networks
    assert parse_filter(dict(parse_qsl(format_filter(wanted).removeprefix("?")))) == wanted
