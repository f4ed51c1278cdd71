"""Records: one for each hostname, with both families. The manifests themselves are in test_planning.py."""

from __future__ import annotations

from dnsproxy.publish.externaldns.manifests import Record, make_records
from tests.kit.publications import publication


def test_the_families_of_a_name_are_parted_and_keep_their_order() -> None:
    names = publication("b.example.org 2001:db8::2 192.0.2.2 192.0.2.1 2001:db8::1", "a.example.org 192.0.2.3").names
    assert make_records(names) == [
        Record("a.example.org", ("192.0.2.3",), ()),
        Record("b.example.org", ("192.0.2.2", "192.0.2.1"), ("2001:db8::2", "2001:db8::1")),
    ]


def test_of_two_wildcards_of_one_name_the_one_for_a_single_label_is_taken() -> None:
    rows = ("*.example.org 192.0.2.1", "**.example.org 192.0.2.2", "**.example.net 192.0.2.3")
    expected = [Record("*.example.net", ("192.0.2.3",), ()), Record("*.example.org", ("192.0.2.1",), ())]
    assert make_records(publication(*rows).names) == expected
    assert make_records(reversed(publication(*rows).names)) == expected
