import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.tap.filters import (
    BadFilter,
    Matcher,
    TapFilter,
    format_filter,
    merge_filters,
    parse_client,
    parse_filter,
    parse_name_pattern,
    parse_outcome,
    parse_type,
)
from dnsproxy.tap.seen import Outcome
from tests.kit.messages import query

QUERY = query("App.Example.org")
NAMES = st.sampled_from(("app.example.org", "*.example.org", "a*b*.org", "*", "www.example.net"))
FILTERS = st.builds(
    TapFilter,
    names=st.lists(NAMES, max_size=2, unique=True).map(tuple),
    clients=st.lists(st.sampled_from(("192.0.2.0/24", "192.0.2.7/32", "2001:db8::/32")), max_size=2, unique=True).map(
        tuple
    ),
    types=st.lists(st.sampled_from((1, 28, 65, 65280)), max_size=2, unique=True).map(tuple),
    outcomes=st.lists(st.sampled_from([one.value for one in Outcome]), max_size=2, unique=True).map(tuple),
)
ASKED = st.tuples(
    st.sampled_from(("app.example.org", "a.b.example.org", "axxb.org", "example.org", "www.example.net", ".")),
    st.sampled_from((1, 28, 65)),
    st.sampled_from(list(Outcome)),
    st.sampled_from(("192.0.2.7", "192.0.2.9", "2001:db8::1", "198.51.100.1")),
)


def wants(wanted: TapFilter, name: str, rtype: int, outcome: Outcome, client: str) -> bool:
    matcher = Matcher(wanted)
    return matcher.wants_query(query(name, rtype), outcome) and matcher.wants_client(client)


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        pytest.param("app.example.org", "app.example.org", True, id="exact"),
        pytest.param("app.example.org", "APP.Example.ORG", True, id="any case"),
        pytest.param("app.example.org.", "app.example.org", True, id="a final dot"),
        pytest.param("example.org", "app.example.org", False, id="a name is not its children"),
        pytest.param("*.example.org", "app.example.org", True, id="one label"),
        pytest.param("*.example.org", "a.b.example.org", True, id="many labels"),
        pytest.param("*.example.org", "example.org", False, id="not the apex"),
        pytest.param("*.example.org", "app.badexample.org", False, id="not a neighbour"),
        pytest.param("app*", "app.example.org", True, id="a prefix"),
        pytest.param("*", ".", True, id="everything, the root too"),
        pytest.param("a*b*c", "abc", True, id="stars may be empty"),
        pytest.param("a*b*c", "acb", False, id="the order counts"),
        pytest.param("ab*ba", "aba", False, id="ends do not overlap"),
        pytest.param("bücher.example.org", "xn--bcher-kva.example.org", True, id="another script"),
    ],
)
def test_a_name_matches_its_pattern(pattern: str, name: str, matches: bool) -> None:
    assert wants(TapFilter(names=(parse_name_pattern(pattern),)), name, 1, Outcome.TABLE, "192.0.2.1") is matches


def test_many_stars_take_no_time() -> None:
    """As a regular expression this would end after the sun."""
    assert not wants(TapFilter(names=("a*" * 100 + "b",)), ".".join(["a" * 60] * 4), 1, Outcome.TABLE, "192.0.2.1")


@pytest.mark.parametrize(
    ("client", "network", "matches"),
    [
        pytest.param("192.0.2.7", "192.0.2.0/24", True, id="in the network"),
        pytest.param("192.0.2.7", "192.0.2.7", True, id="the address"),
        pytest.param("192.0.3.7", "192.0.2.0/24", False, id="outside"),
        pytest.param("2001:db8::7", "2001:db8::/32", True, id="IPv6"),
        pytest.param("2001:db8::7", "192.0.2.0/24", False, id="another family"),
        pytest.param("::ffff:192.0.2.7", "192.0.2.0/24", True, id="mapped, on a socket for both families"),
        pytest.param("192.0.2.7", "192.0.2.9/24", True, id="host bits are ignored"),
    ],
)
def test_a_client_matches_its_network(client: str, network: str, matches: bool) -> None:
    assert Matcher(TapFilter(clients=(parse_client(network),))).wants_client(client) is matches


@pytest.mark.parametrize(("text", "number"), [("a", 1), ("AAAA", 28), ("https", 65), ("TYPE65280", 65280), ("28", 28)])
def test_types_have_names_and_numbers(text: str, number: int) -> None:
    assert parse_type(text) == number


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"nmae": "x"}, "'nmae' is not a field; there are name, client, type, outcome", id="field"),
        pytest.param({"client": "example.org"}, "is not an address or network; try 192.0.2.10", id="client"),
        pytest.param({"client": "192.0.2.0/33"}, "is not an address or network", id="prefix"),
        pytest.param({"type": "AAAAA"}, "is not a query type; try A, AAAA or TYPE65", id="type"),
        pytest.param({"type": "65536"}, "is not a query type", id="type number"),
        pytest.param({"type": "TYPE-1"}, "is not a query type", id="negative type"),
        pytest.param(
            {"outcome": "answered"},
            "it is one of table, zone, upstream, replaced, refused, failed, dropped",
            id="outcome",
        ),
        pytest.param({"name": "."}, "is not a name; try app.example.org or *.example.org", id="name"),
        pytest.param({"name": "x" * 1_001}, "is not a name", id="long name"),
        pytest.param({"name": "ΩΩ..example"}, "", id="another script, malformed"),
    ],
)
def test_a_bad_field_says_what_to_write(fields: dict[str, str], said: str) -> None:
    with pytest.raises(BadFilter) as caught:
        parse_filter(fields)
    assert said in str(caught.value)


def test_no_fields_want_everything() -> None:
    assert parse_filter({"name": "", "client": ","}).is_everything


def test_a_query_without_a_question_matches_no_name_and_no_type() -> None:
    assert not Matcher(TapFilter(names=("*",))).wants_query(b"\0" * 5, Outcome.DROPPED)
    assert not Matcher(TapFilter(types=(1,))).wants_query(QUERY[:20], Outcome.DROPPED)
    assert Matcher(TapFilter(outcomes=("dropped",))).wants_query(b"", Outcome.DROPPED)


def test_random_names_do_not_fill_the_memory() -> None:
    matcher = Matcher(TapFilter(names=("*.example.org",)))
    for number in range(10_000):
        assert matcher.wants_query(query(f"n{number}.example.org"), Outcome.TABLE)
    assert len(matcher._known) <= 4_096


@given(FILTERS)
def test_a_filter_survives_its_fields(wanted: TapFilter) -> None:
    assert parse_filter(format_filter(wanted)) == wanted


@given(st.lists(FILTERS, min_size=1, max_size=4), ASKED)
def test_merged_filters_want_all_that_one_of_them_wants(
    filters: list[TapFilter], asked: tuple[str, int, Outcome, str]
) -> None:
    if any(wants(one, *asked) for one in filters):
        assert wants(merge_filters(filters), *asked)


@pytest.mark.parametrize("text", ["Table", " refused "])
def test_an_outcome_is_read_in_any_case(text: str) -> None:
    assert parse_outcome(text) == text.strip().lower()
