from __future__ import annotations

from collections import Counter

import pytest

from dnsproxy.sources.described.custom import PREFIX, parse_custom
from dnsproxy.sources.described.table import KINDS as DESCRIBED
from dnsproxy.sources.described.table import SOURCES as DESCRIBED_SOURCES
from tests.bench.sync import mix
from tests.bench.sync.contents import INGRESSES, MIXED, Contents
from tests.bench.sync.filling import MOST
from tests.bench.sync.mix import KINDS

TWENTY = range(20)


def test_every_twenty_objects_are_mixed_alike() -> None:
    expected = {kind.kind: kind.share for kind in KINDS}
    assert sum(expected.values()) == 20
    for start in (0, 20, 99_980, MOST):
        assert Counter(mix.kind_of(start + number).kind for number in TWENTY) == expected


def test_every_object_has_a_name_a_host_and_a_key_of_its_own() -> None:
    numbers = [*range(4000), MOST, MOST + 1]
    assert len({mix.object_of(number).hostname for number in numbers}) == len(numbers)
    assert len({mix.object_of(number).path for number in numbers}) == len(numbers)
    assert len({mix.kind_of(number).key(number) for number in numbers}) == len(numbers)


def test_names_are_of_one_length_so_that_a_stored_object_can_be_copied() -> None:
    for name_of in (mix.name_of, mix.hostname_of, mix.namespace_of, mix.gateway_of):
        assert len({len(name_of(number)) for number in (0, 9, 1999, 99_999, MOST + 5)}) == 1


def test_every_namespace_and_every_gateway_has_objects_of_every_kind() -> None:
    numbers = range(20 * mix.NAMESPACES)
    assert len({(mix.kind_of(one).kind, mix.namespace_of(one)) for one in numbers}) == 7 * mix.NAMESPACES
    routes = [one for one in numbers if mix.kind_of(one).kind == "HTTPRoute"]
    assert len({mix.gateway_of(one) for one in routes}) == mix.GATEWAYS


@pytest.mark.parametrize(
    "number", [pytest.param(number, id=f"{mix.kind_of(number).kind} {number}") for number in TWENTY]
)
def test_the_host_is_in_the_object_that_is_created(number: int) -> None:
    made = mix.object_of(number)
    assert made.hostname in str(made.requests[0].body["spec"])
    assert made.path.startswith(made.requests[0].path)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_only_a_kind_that_is_judged_waits_for_its_status(kind: mix.MixedKind) -> None:
    """Else the clock of a creation would begin after the answer."""
    number = next(number for number in TWENTY if mix.kind_of(number) is kind)
    methods = [request.method for request in mix.object_of(number).requests]
    assert methods == (["POST", "PATCH"] if kind.kind in ("HTTPProxy", "Route") else ["POST"])


def test_what_is_judged_here_is_what_the_table_judges() -> None:
    judging = {kind.name for kind in DESCRIBED if kind.refusal is not None}
    assert judging == {kind.kind for kind in KINDS if kind.is_judged}


def test_every_kind_has_a_source_that_reads_it() -> None:
    read = {kind.name for kind in DESCRIBED if kind.source in mix.SOURCES} | {"Ingress", "HTTPRoute", "Site"}
    assert {kind.kind for kind in KINDS} <= read
    assert set(DESCRIBED_SOURCES) | {"ingress", "gateway", mix.SITES} == set(mix.SOURCES)
    assert mix.SITES.startswith(PREFIX)
    assert parse_custom(mix.SITES).watched.resource == "sites"


@pytest.mark.parametrize("contents", [INGRESSES, MIXED], ids=lambda contents: contents.name)
def test_contents_number_their_objects(contents: Contents) -> None:
    assert contents.hostname_of(7) == contents.object_of(7).hostname
    assert contents.hostname_of(7) != contents.hostname_of(8)
