"""The hostnames of one Ingress, and the default IngressClass."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.sources.annotations import HOSTNAME, IGNORE, TARGET
from dnsproxy.sources.ingress import Ingress, IngressClass, claims_of, default_class
from dnsproxy.sources.ingress_hosts import TlsHosts
from dnsproxy.sources.ingress_nginx import ALIAS

METADATA = {"name": "shop", "namespace": "web", "creationTimestamp": "2026-01-02T03:04:05Z", "uid": "x"}
ORIGIN = Origin("Ingress", "shop", "web", "2026-01-02T03:04:05Z")


def parse(spec: object, **metadata: Any) -> Ingress:
    return msgspec.convert({"metadata": METADATA | metadata, "spec": spec, "status": {"loadBalancer": None}}, Ingress)


def hostnames(spec: object, *, tls_only: bool = False, tls_hosts: TlsHosts = TlsHosts.RULES) -> list[str]:
    return [claim.hostname for claim in claims_of(parse(spec), tls_only=tls_only, tls_hosts=tls_hosts)[0]]


BOTH = {
    "rules": [{"host": "a.example.org"}, {"host": "b.example.org"}],
    "tls": [{"hosts": ["b.example.org", "c.example.org"]}],
}


def test_hosts_of_rules_count_and_of_tls_those_that_a_rule_has() -> None:
    """In the order in which the object has them."""
    assert hostnames(BOTH) == ["a.example.org", "b.example.org"]
    assert hostnames(BOTH, tls_hosts=TlsHosts.ALL) == ["a.example.org", "b.example.org", "c.example.org"]


def test_tls_only_takes_the_hosts_of_tls() -> None:
    """Also where no rule names them, if all count."""
    assert hostnames(BOTH, tls_only=True) == ["b.example.org"]
    assert hostnames(BOTH, tls_only=True, tls_hosts=TlsHosts.ALL) == ["b.example.org", "c.example.org"]


def test_the_names_of_a_certificate_that_no_rule_has_are_one_intended_rejection() -> None:
    """So that mail.example.org, which may be elsewhere, is forwarded, and `explain` has the reason."""
    tls = [{"hosts": ["example.org", "*.example.org"]}, {"hosts": ["app.example.org"]}]
    claims, (rejection,) = claims_of(parse({"rules": [{"host": "app.example.org"}], "tls": tls}), tls_only=False)
    assert [claim.hostname for claim in claims] == ["app.example.org"]
    assert rejection.origin == ORIGIN
    assert rejection.reason.startswith("example.org, *.example.org: no rule has these hosts")
    assert "--tls-hosts all" in rejection.reason
    assert rejection.deliberate


def test_a_host_of_tls_that_an_annotation_has_is_claimed_by_the_annotation() -> None:
    """Which may need a right that a rule does not need."""
    spec = {"rules": [{"host": "a.example.org"}], "tls": [{"hosts": ["b.example.org"]}]}
    claims, rejections = claims_of(parse(spec, annotations={HOSTNAME: "b.example.org"}), tls_only=False)
    assert [(claim.hostname, claim.terms.annotated) for claim in claims] == [
        ("a.example.org", False), ("b.example.org", True)
    ]  # fmt: skip
    assert rejections == []


@pytest.mark.parametrize("tls_only", [False, True])
def test_a_host_of_tls_that_is_an_alias_of_ingress_nginx_is_claimed_as_the_alias(tls_only: bool) -> None:
    """The server of a rule has it; with --tls-only too, because it is in a TLS section, unlike the other alias."""
    spec = {"rules": [{"host": "a.example.org", "http": {}}], "tls": [{"hosts": ["a.example.org", "b.example.org"]}]}
    annotations = {ALIAS: "b.example.org,c.example.org,~bad"}
    claims, rejections = claims_of(parse(spec, annotations=annotations), tls_only=tls_only)
    others = [] if tls_only else [("c.example.org", True)]
    assert [(claim.hostname, claim.is_additional) for claim in claims] == [
        ("a.example.org", False), ("b.example.org", True), *others
    ]  # fmt: skip
    assert len(rejections) == (0 if tls_only else 1)


def test_a_claim_has_its_origin() -> None:
    """With the age that decides between two objects."""
    claims, rejections = claims_of(parse({"rules": [{"host": "a.example.org"}]}), tls_only=False)
    assert claims == [Claim("a.example.org", Reach.NAME, ORIGIN)]
    assert rejections == []


def test_wildcard_covers_one_label() -> None:
    """As the Ingress specification says, unlike Gateway's."""
    (claim,), _ = claims_of(parse({"rules": [{"host": "*.Example.org"}]}), tls_only=False)
    assert (claim.hostname, claim.reach) == ("*.example.org", Reach.ONE_LABEL)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"rules": None, "tls": None},
        {"rules": [], "tls": []},
        {"rules": [None, {}, {"host": None}, {"host": ""}, {"http": {"paths": None}}], "tls": [None, {}]},
        {"tls": [{"hosts": None}, {"hosts": []}, {"hosts": [None, ""]}, {"secretName": "x"}]},
        {"defaultBackend": {"service": {"name": "x"}}},
    ],
    ids=["null-spec", "empty-spec", "null-lists", "empty-lists", "rules-without-host", "tls-without-hosts", "default"],
)
def test_absent_hosts_are_no_claims_and_no_faults(spec: object) -> None:
    """Null wherever Go may write it; a rule without a host means any host."""
    assert claims_of(parse(spec), tls_only=False) == ([], [])


def test_different_spellings_of_one_host_are_one_claim() -> None:
    """Case, the final dot, spaces around."""
    spec = {"rules": [{"host": "A.example.org"}, {"host": "a.example.org."}], "tls": [{"hosts": [" a.EXAMPLE.org"]}]}
    assert hostnames(spec) == ["a.example.org"]


@pytest.mark.parametrize(
    "bad",
    ["192.0.2.1", "2001:db8::1", "*", "*.", "a.*.example.org", "a b.example.org", "a\n.example.org", "x" * 64 + ".org",
     ".".join(["abcdefgh"] * 32), "-a.example.org", "a..example.org", "{}", "a.example.org;"],
)  # fmt: skip
def test_bad_host_is_rejected_and_harms_no_other(bad: str) -> None:
    """The object and the fault are named."""
    rules = [{"host": "a.example.org"}, {"host": bad}, {"http": {}}]
    spec = {"rules": rules, "tls": [{"hosts": [bad, "b.example.org"]}]}
    claims, rejections = claims_of(parse(spec), tls_only=False)
    assert [claim.hostname for claim in claims] == ["a.example.org", "b.example.org"]
    (rejection,) = rejections
    assert rejection.origin == ORIGIN
    assert rejection.reason.isprintable()


OLD = {"annotations": {"kubernetes.io/ingress.class": "old", "other": "x"}}


@pytest.mark.parametrize(
    ("spec", "metadata", "expected"),
    [
        pytest.param({"ingressClassName": "new"}, {}, "new", id="field"),
        pytest.param({"ingressClassName": "new"}, OLD, "new", id="field-beats-annotation"),
        pytest.param({}, OLD, "old", id="annotation"),
        pytest.param({"ingressClassName": ""}, OLD, "old", id="empty-field"),
        pytest.param({}, {"annotations": None}, None, id="null-annotations"),
        pytest.param({}, {"annotations": {"kubernetes.io/ingress.class": ""}}, None, id="empty-annotation"),
        pytest.param(None, {}, None, id="none"),
    ],
)
def test_class_is_the_one_that_the_object_names(
    spec: dict[str, Any] | None, metadata: dict[str, Any], expected: str | None
) -> None:
    """The field, then the older annotation."""
    ingress = parse(spec if spec is None else spec | {"rules": [{"host": "a.example.org"}]}, **metadata)
    assert ingress.class_name == expected
    for claim in claims_of(ingress, tls_only=False)[0]:
        assert claim.terms.ingress_class == expected


@pytest.mark.parametrize(("size", "claims"), [(253, 1), (254, 0), (250_000, 0)])
def test_a_class_that_no_ingress_class_can_have_claims_nothing_and_is_not_kept(size: int, claims: int) -> None:
    annotations = {"annotations": {"kubernetes.io/ingress.class": "c" * size}}
    found, rejections = claims_of(parse({"rules": [{"host": "a.example.org"}]}, **annotations), tls_only=False)
    assert len(found) == claims
    assert all(len(rejection.reason) < 300 and "253 characters" in rejection.reason for rejection in rejections)
    assert len(rejections) == 1 - claims


A, B = "a.example.org", "b.example.org"
RULE = {"rules": [{"host": A}]}


def marked(mark: str, text: str, *, where: str = "annotations") -> Ingress:
    return parse(RULE, **{where: {mark: text}})


def test_a_target_of_its_own_goes_with_every_claim() -> None:
    ingress = parse(BOTH, annotations={TARGET: "service:edge/relay"})
    assert {claim.terms.target for claim in claims_of(ingress, tls_only=False)[0]} == {"service:edge/relay"}


@pytest.mark.parametrize("where", ["annotations", "labels"])
def test_an_ignored_object_claims_nothing_and_rejects_each_of_its_names(where: str) -> None:
    ingress = parse(BOTH, **{where: {IGNORE: "true"}})
    claims, rejections = claims_of(ingress, tls_only=True, tls_hosts=TlsHosts.ALL)
    assert claims == []
    assert [(one.reason, one.deliberate) for one in rejections] == [
        (f"{name}: it is ignored (switchback.dev/ignore)", True) for name in ("b.example.org", "c.example.org")
    ]


@pytest.mark.parametrize(
    "mark", [{IGNORE: "yes"}, {TARGET: "relay"}, {TARGET: ""}, {IGNORE: "True", TARGET: "?"}], ids=str
)
def test_an_object_with_an_invalid_annotation_claims_nothing(mark: dict[str, str]) -> None:
    claims, rejections = claims_of(parse(RULE, annotations=mark), tls_only=False)
    assert claims == []
    assert [one.deliberate for one in rejections] == [False] * (len(mark) + 1)
    assert rejections[-1].reason == f"{A}: it has an invalid annotation"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(B, [A, B], id="one"),
        pytest.param(f" B.example.org. ,{A},,c.example.org,", [A, B, "c.example.org"], id="a list"),
        pytest.param("*.b.example.org", [A, "*.b.example.org"], id="a wildcard"),
        pytest.param("", [A], id="empty"),
        pytest.param(" , ", [A], id="nothing but commas"),
    ],
)
def test_hostnames_of_an_annotation_count_beside_its_own(text: str, names: list[str]) -> None:
    claims, rejections = claims_of(marked(HOSTNAME, text), tls_only=False)
    assert [(claim.hostname, claim.terms.annotated) for claim in claims] == [(name, name != A) for name in names]
    assert {claim.reach for claim in claims if claim.hostname.startswith("*")} <= {Reach.ONE_LABEL}
    assert rejections == []


def test_hostnames_of_an_annotation_count_with_tls_only() -> None:
    assert [claim.hostname for claim in claims_of(marked(HOSTNAME, B), tls_only=True)[0]] == [B]


@pytest.mark.parametrize("bad", ["*", "192.0.2.1", "a b.example.org", "x" * 64 + ".org", "a..example.org", "https://x"])
def test_an_invalid_hostname_in_an_annotation_affects_no_other(bad: str) -> None:
    claims, (rejection,) = claims_of(marked(HOSTNAME, f"{bad},{B}"), tls_only=False)
    assert [claim.hostname for claim in claims] == [A, B]
    assert HOSTNAME in rejection.reason
    assert rejection.reason.isprintable()


def test_the_load_balancer_of_its_status_goes_with_every_claim() -> None:
    points = [{"ip": "192.0.2.7"}, {"hostname": "LB.example.net."}]
    ingress = msgspec.convert(
        {"metadata": METADATA, "spec": BOTH, "status": {"loadBalancer": {"ingress": points}}}, Ingress
    )
    claims, _ = claims_of(ingress, tls_only=False)
    assert {claim.terms.status for claim in claims} == {("192.0.2.7", "lb.example.net")}


NAMES = ["a.example.org", "B.example.org.", "*.example.org", "*.b.example.org", "example.org", "?", ""]
HOSTS = st.sampled_from(NAMES) | st.none()
RULES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({"host": HOSTS}, optional={"http": st.just({})})
SECTIONS = st.fixed_dictionaries({"hosts": st.lists(HOSTS, max_size=4)})
SPECS = st.fixed_dictionaries(
    {"rules": st.lists(RULES, max_size=3)},
    optional={"tls": st.lists(SECTIONS, max_size=2), "defaultBackend": st.just({})},
)


@given(SPECS, st.booleans(), st.none() | st.integers(1, 4))
def test_less_is_claimed_by_the_rules_than_with_all_hosts_and_each_other_host_is_rejected_once(
    spec: dict[str, Any], tls_only: bool, most: int | None
) -> None:
    """Every host of a rule is claimed with both, unless TLS sections alone count."""
    claims, rejections = claims_of(parse(spec), tls_only=tls_only, most=most)
    everything, faults = claims_of(parse(spec), tls_only=tls_only, tls_hosts=TlsHosts.ALL, most=most)
    taken, possible = ({claim.hostname for claim in found} for found in (claims, everything))
    in_rules = {claim.hostname for claim in claims_of(parse(spec | {"tls": None}), tls_only=False, most=most)[0]}
    assert taken <= possible
    assert tls_only or in_rules <= taken
    (*_, reason) = ["", *(one.reason for one in rejections if one.deliberate)]
    assert {name.strip() for name in reason.partition(":")[0].split(",") if name} == possible - taken
    assert len(rejections) >= len(faults)


@given(st.lists(st.text() | st.none()), st.lists(st.lists(st.text() | st.none()) | st.none()))
def test_any_text_is_a_claim_or_a_rejection(rules: list[str | None], tls: list[list[str | None] | None]) -> None:
    """Never an exception, and never two claims on one hostname."""
    spec = {"rules": [{"host": host} for host in rules], "tls": [{"hosts": hosts} for hosts in tls]}
    claims, rejections = claims_of(parse(spec), tls_only=False)
    assert len({claim.hostname for claim in claims}) == len(claims)
    given_hosts = {host for host in rules if host} | {host for hosts in tls for host in hosts or () if host}
    assert len(claims) + len(rejections) <= len(given_hosts)
    assert bool(claims or rejections) == bool(given_hosts)


MARK = "ingressclass.kubernetes.io/is-default-class"


def parse_class(name: str, mark: str | None = "true", created: str | None = "2026-01-01T00:00:00Z") -> IngressClass:
    annotations = {MARK: mark} if mark is not None else None
    metadata = {"name": name, "creationTimestamp": created, "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": {"controller": "example.org/x"}}, IngressClass)


@pytest.mark.parametrize("mark", [None, "", "false", "True", "yes", "1"])
def test_only_true_makes_a_default(mark: str | None) -> None:
    """As the API server reads it."""
    assert default_class([parse_class("a", mark)]) is None


def test_newest_default_wins_and_then_the_first_by_name() -> None:
    """In any order."""
    old, new = parse_class("a"), parse_class("c", created="2026-02-01T00:00:00Z")
    same, plain = parse_class("b", created="2026-02-01T00:00:00Z"), parse_class("d", None, "2026-03-01T00:00:00Z")
    for order in itertools.permutations([old, new, same, plain]):
        assert default_class(order) == "b"
    assert default_class([old, parse_class("z", created=None)]) == "a"
    assert default_class([]) is None


@pytest.mark.parametrize(
    ("hosts", "most", "taken", "lost"),
    [
        (["a", "b"], None, ["a", "b"], False),
        (["a", "b"], 2, ["a", "b"], False),
        (["a", "b", "a", "b"], 2, ["a", "b"], False),
        (["a", "b", "c"], 2, ["a", "b"], True),
        (["a", "192.0.2.1", "c"], 2, ["a"], True),
    ],
    ids=["no-limit", "just-as-many", "repeated", "one-more", "invalid-ones-count"],
)
def test_first_hosts_count(hosts: list[str], most: int | None, taken: list[str], lost: bool) -> None:
    """The others are not even read; the owner is told."""
    claims, rejections = claims_of(
        parse({"tls": [{"hosts": hosts}]}), tls_only=False, tls_hosts=TlsHosts.ALL, most=most
    )
    assert [claim.hostname for claim in claims] == taken
    assert any("--max-names-per-object" in one.reason for one in rejections) is lost
