"""Which Services are in use: after any history, those that the last claims name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.service_uses import ServiceUses, Turn

hostnames = st.sampled_from(["a.org", "b.org", "c.org"])
targets = st.sampled_from(["service:x/one", "service:x/two", "service:y/one", "192.0.2.1", "status"])


@given(st.lists(st.tuples(hostnames, st.lists(targets, max_size=3)), max_size=12))
def test_what_is_named_and_left_adds_up_to_what_the_last_claims_name(steps: list[tuple[str, list[str]]]) -> None:
    uses, in_use = ServiceUses(), set[str]()
    for hostname, chosen in steps:
        turn = uses.put(hostname, chosen)
        assert not turn.named & in_use
        assert turn.left <= in_use
        in_use = (in_use | turn.named) - turn.left
    last = {hostname: {one[8:] for one in chosen if one.startswith("service:")} for hostname, chosen in steps}
    assert in_use == set().union(*last.values())
    for key in ("x/one", "x/two", "y/one"):
        assert set(uses.hostnames(key)) == {hostname for hostname, keys in last.items() if key in keys}


def test_a_hostname_that_goes_leaves_nothing_behind() -> None:
    uses = ServiceUses()
    assert uses.put("a.org", ["service:x/one"]) == Turn(named=frozenset({"x/one"}))
    assert uses.put("a.org", ["service:x/one"]) == Turn()
    assert uses.put("b.org", ["service:x/one"]) == Turn()
    assert uses.put("a.org", []) == Turn()
    assert uses.put("b.org", []) == Turn(left=frozenset({"x/one"}))
    assert uses.hostnames("x/one") == []
    assert (uses._by_hostname, uses._by_service) == ({}, {})
