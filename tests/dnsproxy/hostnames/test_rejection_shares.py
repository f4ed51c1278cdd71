"""How many rejections are kept of one object and of one namespace."""

from __future__ import annotations

from dnsproxy.hostnames.claims import Origin, Rejection
from dnsproxy.hostnames.rejection_shares import PER_NAMESPACE, PER_OBJECT, RejectionShares

ORIGIN = Origin("Ingress", "web", "shop")


def faults(count: int) -> list[Rejection]:
    return [Rejection(ORIGIN, f"fault {number}") for number in range(count)]


def test_few_are_all_kept() -> None:
    """In their order."""
    shares = RejectionShares()
    assert list(shares.bound("shop", faults(PER_OBJECT), known=0)) == faults(PER_OBJECT)
    assert shares.bound("shop", [], known=PER_OBJECT) == ()


def test_one_object_with_many() -> None:
    """The last that is kept counts the others."""
    kept = RejectionShares().bound("shop", faults(30_000), known=0)
    assert len(kept) == PER_OBJECT
    assert kept[:-1] == tuple(faults(PER_OBJECT - 1))
    assert kept[-1].reason == "29,901 more hostnames or settings are rejected"


def test_many_objects_fill_only_their_own_namespace() -> None:
    """And make room when they are mended."""
    shares = RejectionShares()
    kept = [shares.bound("shop", faults(PER_OBJECT), known=0) for _ in range(20)]
    assert sum(map(len, kept)) == PER_NAMESPACE
    assert shares.is_full("shop")
    assert not shares.is_full("blog")
    assert len(shares.bound("blog", faults(3), known=0)) == 3
    assert shares.bound("shop", faults(1), known=0) == ()
    shares.bound("shop", [], known=PER_OBJECT)
    assert not shares.is_full("shop")
    assert len(shares.bound("shop", faults(1), known=0)) == 1
