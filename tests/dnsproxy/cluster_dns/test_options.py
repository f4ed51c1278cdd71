"""Names of objects on the command line. The flags are tested with the commands that take them."""

from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.found import ServiceRef
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.options import make_service_ref, parse_object_ref

LONGEST = "a" * 253


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        pytest.param("kube-system/kube-dns", ObjectRef("kube-system", "kube-dns"), id="usual"),
        pytest.param(" a/b.c-d0 ", ObjectRef("a", "b.c-d0"), id="dots, dashes and blanks around"),
        pytest.param(f"a/{LONGEST}", ObjectRef("a", LONGEST), id="longest"),
    ],
)
def test_an_object_has_a_namespace_and_a_name(text: str, ref: ObjectRef) -> None:
    assert parse_object_ref(text) == ref
    assert parse_object_ref(str(ref)) == ref


@pytest.mark.parametrize(
    "text",
    ["", "/", "a", "a/", "/b", "a/b/c", "A/b", "a/-b", "a/b-", "a/..", "a/b%2fc", "a/b?x", f"a/{LONGEST}a"],
)
def test_a_text_that_is_not_a_name_never_becomes_part_of_a_path(text: str) -> None:
    with pytest.raises(ValueError, match="is not NAMESPACE/NAME"):
        parse_object_ref(text)


def test_a_named_service_is_the_only_candidate() -> None:
    assert make_service_ref(None) == ServiceRef()
    assert make_service_ref(ObjectRef("dns", "own")) == ServiceRef("dns", "own", exact=True)
