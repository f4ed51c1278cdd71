"""What an object without a class contributes; its use is tested with its sources."""

from __future__ import annotations

import gc

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Rejection, Terms
from dnsproxy.sources.classless import Classless

ORIGIN = Origin("Ingress", "shop", "web")
CLAIMS = tuple(Claim(f"{name}.example.org", Reach.NAME, ORIGIN, Terms(target="192.0.2.7")) for name in "ab")
REJECTIONS = (Rejection(ORIGIN, "a reason"),)


@pytest.mark.parametrize("name", ["public", None])
def test_only_the_class_differs(name: str | None) -> None:
    claims, rejections = Classless(CLAIMS, REJECTIONS).with_class(name)
    assert [claim.terms.ingress_class for claim in claims] == [name, name]
    assert [(one.hostname, one.reach, one.origin, one.terms.target) for one in claims] == [
        (one.hostname, one.reach, one.origin, one.terms.target) for one in CLAIMS
    ]
    assert rejections == REJECTIONS


def test_it_is_no_work_for_the_garbage_collector() -> None:
    found = Classless(CLAIMS, REJECTIONS)
    gc.collect()
    assert not any(gc.is_tracked(one) for one in (found, found.claims, found.rejections))
