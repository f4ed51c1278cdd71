"""Explanations: the answer of the table for a name, the excluded claims, and why there is no answer."""

from __future__ import annotations

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.admin.explain import (
    Explanation,
    explain,
    format_document,
    format_explanation,
    format_explanation_json,
    parse_explanation,
)
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Rejection, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.holds import Holds
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import LedElsewhere
from dnsproxy.tap.recent import AskedBy, Asking, RecentClients
from tests.dnsproxy.hostnames.test_registry import Following, object_claims
from tests.kit.messages import addresses_of

RELAY: Final = "192.0.2.10"
OLD, YOUNG = "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"


def ingress(hostname: str, name: str = "web", created: str = OLD, **rest: object) -> Claim:
    reach = Reach.ONE_LABEL if hostname.startswith("*.") else Reach.NAME
    origin = Origin("Ingress", name, "shop", created)
    return Claim(hostname, reach, origin, Terms(**rest))  # type: ignore[arg-type]


def static(hostname: str, address: str = "192.0.2.99") -> Claim:
    reach = Reach.ANY_LABELS if hostname.startswith("*.") else Reach.NAME
    return Claim(hostname, reach, Origin("flag", f"--host {hostname}={address}"), Terms((address,)))


def registry_of(*claims: Claim, targets: Targets | None = None, guards: Guards | None = None) -> Registry:
    registry = Registry(targets=targets or Targets((RELAY,)), guards=guards or Guards())
    for number, one in enumerate(claims):
        registry.replace("test", str(number), [one])
    return registry


def explained(registry: Registry, name: str) -> Explanation:
    return parse_explanation(b"".join(format_explanation_json(registry, name, ttl=5, notes=())))


def text_of(registry: Registry, name: str) -> str:
    return "\n".join(format_explanation(explained(registry, name)))


labels = st.lists(st.sampled_from(["x", "app", "intern", "y"]), max_size=3)
bases = st.sampled_from(["example.org", "app.example.org", "intern.example.org", "a.cluster.local", "org"])


@given(st.lists(object_claims(), max_size=8), labels, bases)
def test_an_explanation_matches_the_table(
    steps: list[tuple[tuple[str, str], tuple[Claim, ...]]], labels: list[str], base: str
) -> None:
    following = Following()
    for key, claims in steps:
        following.replace(key, *claims)
    name = ".".join([*labels, base])
    explanation = explain(following.registry, name, ttl=5)
    answer = explanation.answer
    assert (answer.addresses if answer else None) == addresses_of(following.table(), name)
    assert bool(explanation.reasons or explanation.left_out) or answer is not None


@pytest.mark.parametrize(
    ("name", "rule", "address"),
    [
        pytest.param("app.example.org", "the exact name", RELAY, id="exact"),
        pytest.param("APP.Example.ORG.", "the exact name", RELAY, id="case and final dot"),
        pytest.param("x.example.org", "the wildcard *.example.org, which covers one label", RELAY, id="one label"),
        pytest.param(
            "a.b.example.net", "the wildcard *.example.net, which covers one or more labels", "192.0.2.99", id="any"
        ),
        pytest.param("*.example.org", "the wildcard *.example.org, which covers one label", RELAY, id="itself"),
        pytest.param("bücher.example.com", "the exact name", RELAY, id="other letters"),
    ],
)
def test_the_rule_that_matched_is_named(name: str, rule: str, address: str) -> None:
    registry = registry_of(
        ingress("app.example.org"),
        ingress("*.example.org"),
        static("*.example.net"),
        ingress("xn--bcher-kva.example.com"),
    )
    text = text_of(registry, name)
    assert f"is answered with {address}\n  rule    {rule}\n" in text
    assert text.endswith("TTL     5 s") or "excluded" in text


@pytest.mark.parametrize(
    ("claim", "target"),
    [
        pytest.param(ingress("a.example.org"), f"--target {RELAY}", id="default"),
        pytest.param(
            ingress("a.example.org", ingress_class="inner"), "--target-for inner=192.0.2.20", id="of the class"
        ),
        pytest.param(ingress("a.example.org", ingress_class="other"), f"--target {RELAY}", id="of no known class"),
        pytest.param(ingress("a.example.org", target="192.0.2.7"), "192.0.2.7, which the object chose", id="its own"),
        pytest.param(
            ingress("a.example.org", target="service:edge/relay"),
            "service:edge/relay, which the object chose",
            id="a Service",
        ),
        pytest.param(static("a.example.org"), "its own addresses", id="static"),
    ],
)
def test_the_target_is_named_as_it_was_set(claim: Claim, target: str) -> None:
    services = {"edge/relay": ("192.0.2.30",)}
    registry = registry_of(claim, targets=Targets((RELAY,), {"inner": ("192.0.2.20",)}, services))
    assert explained(registry, "a.example.org").target == target
    assert f"  target  {target}\n" in text_of(registry, "a.example.org")


@pytest.mark.parametrize(
    ("claims", "name", "left_out"),
    [
        pytest.param(
            [ingress("a.example.org", "old"), ingress("a.example.org", "young", YOUNG)],
            "a.example.org",
            ["Ingress shop/young claims it: Ingress shop/old has it"],
            id="the older object",
        ),
        pytest.param(
            [ingress("a.example.org"), static("a.example.org")],
            "a.example.org",
            ["Ingress shop/web claims it: flag --host a.example.org=192.0.2.99 has it"],
            id="static wins",
        ),
        pytest.param(
            [ingress("a.example.org"), ingress("*.example.org", "wild")],
            "a.example.org",
            ["Ingress shop/wild claims *.example.org: a.example.org of Ingress shop/web comes first"],
            id="exact beats wildcard",
        ),
        pytest.param(
            [static("*.a.example.org"), static("*.example.org", "192.0.2.98")],
            "x.a.example.org",
            [
                "flag --host *.example.org=192.0.2.98 claims *.example.org: "
                "*.a.example.org of flag --host *.a.example.org=192.0.2.99 comes first"
            ],
            id="longer beats shorter",
        ),
        pytest.param(
            [ingress("*.example.org")],
            "x.a.example.org",
            ["Ingress shop/web claims *.example.org: an Ingress wildcard covers one label only"],
            id="a wildcard that reaches less far",
        ),
        pytest.param(
            [ingress("*.example.org")],
            "no.example.org",
            ["Ingress shop/web claims *.example.org: it is denied (--deny)"],
            id="denied below a wildcard",
        ),
        pytest.param(
            [ingress("no.example.org")],
            "no.example.org",
            ["Ingress shop/web claims it: it is denied (--deny)"],
            id="denied",
        ),
        pytest.param(
            [ingress("a.svc.cluster.local")],
            "a.svc.cluster.local",
            ["Ingress shop/web claims it: it is inside the cluster domain cluster.local"],
            id="cluster domain",
        ),
        pytest.param(
            [ingress("a.example.org", target="service:shop/gone")],
            "a.example.org",
            ["Ingress shop/web claims it: its target has no address (service:shop/gone)"],
            id="a target without an address",
        ),
    ],
)
def test_the_excluded_claims_have_reasons(claims: list[Claim], name: str, left_out: list[str]) -> None:
    registry = registry_of(*claims, guards=Guards(deny=("no.example.org",)))
    lines = text_of(registry, name).splitlines()
    assert [line.removeprefix("  excluded  ") for line in lines if line.startswith("  excluded")] == left_out


@pytest.mark.parametrize(
    ("hostname", "name", "reason"),
    [
        pytest.param(
            "github.com.eu.example.org",
            "github.com.eu.example.org",
            "it is in the search domain eu.example.org, which resolvers add to other names; "
            "--allow github.com.eu.example.org allows that",
            id="in a search domain",
        ),
        pytest.param(
            "*.example.org",
            "eu.example.org",
            "no wildcard reaches into the search domain eu.example.org; --allow eu.example.org allows that",
            id="a wildcard above a search domain",
        ),
        pytest.param("registry", "registry", "--allow registry allows that", id="one label"),
        pytest.param("*.co.uk", "a.co.uk", "--allow co.uk allows that", id="a wildcard of a public suffix"),
        pytest.param("a.internal", "A.internal.", "--allow a.internal allows that", id="internal"),
    ],
)
def test_a_name_that_no_object_gets_is_explained_with_the_flag_that_allows_it(
    hostname: str, name: str, reason: str
) -> None:
    registry = registry_of(ingress(hostname), guards=Guards(search=("eu.example.org",)))
    text = text_of(registry, name)
    assert "is not in the table" in text
    assert f"  excluded  Ingress shop/web claims {'it' if hostname == name.lower().rstrip('.') else hostname}: " in text
    assert text.splitlines()[1].endswith(reason)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("a.example.org", "no object claims it", id="claimed by nobody"),
        pytest.param("a.example.net", "it is outside the zones example.org (--zone)", id="outside the zones"),
        pytest.param("x.localhost", "localhost names belong to each host itself", id="localhost"),
        pytest.param("kubernetes.default.svc.cluster.local", "it is inside the cluster domain", id="cluster domain"),
        pytest.param("192.0.2.1", "is an IP address, not a hostname", id="an address"),
        pytest.param("*", "is not a hostname", id="a bare star"),
        pytest.param("a..b", "a label is empty", id="an empty label"),
        pytest.param("a b.example.org", "is not a host label", id="a blank inside"),
        pytest.param("a." * 200, "is longer than 255 octets", id="too long"),
        pytest.param("\x1b[31mred", "is not a host label", id="escapes"),
    ],
)
def test_why_there_is_nothing(name: str, reason: str) -> None:
    registry = registry_of(ingress("other.example.org"), guards=Guards(zones=("example.org",)))
    explanation = explained(registry, name)
    assert explanation.answer is None
    assert any(reason in one for one in explanation.reasons), explanation.reasons
    text = text_of(registry, name)
    assert "is not in the table: queries for it are forwarded\n  because  " in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("name", "reason", "found"),
    [
        pytest.param("-bad-.example.org", "'-bad-.example.org': a label is not a host label", True, id="a bad host"),
        pytest.param("a.example.org", "a.example.org: Gateway edge/main does not exist", True, id="a route's host"),
        pytest.param("A.example.org.", "'a.Example.ORG.' is out", True, id="case and final dot"),
        pytest.param("a.example.org", "*.example.org: Gateway edge/main is ignored", True, id="a wildcard above it"),
        pytest.param("a.example.org", "a.example.org.", True, id="at the end of a sentence"),
        pytest.param("a.example.org", "ba.example.org: x", False, id="the end of a longer label"),
        pytest.param("a.example.org", "b.a.example.org: x", False, id="the end of a longer name"),
        pytest.param("a.example.org", "a.example.org.uk: x", False, id="the beginning of a longer name"),
        pytest.param("a.example.org", "*.a.example.org: x", False, id="a wildcard below it"),
        pytest.param("a.example.org", "an Ingress without a host", False, id="something else"),
    ],
)
def test_rejections_that_mention_the_name_are_listed(name: str, reason: str, found: bool) -> None:
    registry = registry_of()
    registry.replace("HTTPRoute", "shop/x", [], [Rejection(Origin("HTTPRoute", "x", "shop"), reason)])
    assert explained(registry, name).rejected == ((f"HTTPRoute shop/x: {reason}",) if found else ())
    assert ("  rejected  HTTPRoute shop/x" in text_of(registry, name)) is found


def test_losers_and_rejections_without_number_are_cut() -> None:
    claims = [ingress("a.example.org", f"i{number}") for number in range(200)]
    registry = registry_of(*claims)
    faults = [Rejection(Origin("Ingress", "x"), f"a.example.org: {number}") for number in range(5000)]
    registry.replace("test", "faults", [], faults)
    pieces = list(format_explanation_json(registry, "a.example.org", ttl=5, notes=()))
    assert pieces.count(b"") >= 10
    explanation = parse_explanation(pieces[-1])
    assert (len(explanation.left_out), len(explanation.rejected)) == (50, 50)


def test_notes_come_with_every_explanation() -> None:
    for name in ("a.example.org", "b.example.org", "*"):
        explanation = explain(registry_of(ingress("a.example.org")), name, ttl=5, notes=["Ingress is not synced yet"])
        assert list(format_explanation(explanation))[-1] == "  note  Ingress is not synced yet"


def led(hostname: str, claim: Claim, *, answered: bool = False) -> LedElsewhere:
    return LedElsewhere(hostname, claim, ("198.51.100.9",), answered=answered)


@pytest.mark.parametrize("answered", [False, True], ids=["verified", "warned"])
def test_a_name_that_leads_elsewhere_is_explained_with_where_and_with_advice(answered: bool) -> None:
    one = ingress("a.example.org")
    registry = registry_of(one, ingress("a.example.org", "young", YOUNG))
    registry.outcomes.set_elsewhere([led("a.example.org", one, answered=answered)])
    text = text_of(registry, "a.example.org")
    told = f"is answered with {RELAY}" if answered else f"is in the table with {RELAY}, and forwarded"
    done = "it is answered all the same" if answered else "that is left as it is"
    assert f"a.example.org {told}\n" in text
    assert f"\n  leads   its public record leads elsewhere (198.51.100.9): {done}; if it is to be answered" in text
    assert ("--trust ZONE" in text, "--trust NETWORK" in text, "--deny NAME" in text) == (True, True, True)
    assert "excluded  Ingress shop/young claims it: Ingress shop/web has it" in text


def test_a_name_below_a_wildcard_that_leads_elsewhere_is_explained_alone() -> None:
    one = ingress("*.example.org")
    registry = registry_of(one)
    registry.outcomes.set_elsewhere([led("mail.example.org", one)])
    assert f"mail.example.org is in the table with {RELAY}, and forwarded" in text_of(registry, "mail.example.org")
    for other in ("web.example.org", "*.example.org"):
        assert f"{other} is answered with {RELAY}" in text_of(registry, other)


def test_nothing_from_outside_reaches_a_terminal_as_it_is() -> None:
    evil = "\x1b[2J\x7f\u202e\n"
    claim = Claim("a.example.org", Reach.NAME, Origin("Ingress", evil, evil, evil), Terms((), evil, evil, (evil,)))
    registry = registry_of(static("a.example.org", "192.0.2.1"), claim)
    registry.replace("test", "fault", [], [Rejection(Origin("Ingress", evil), f"a.example.org: {evil}")])
    for name in ("a.example.org", f"a.example.org{evil}"):
        explanation = explain(registry, name, ttl=5, notes=[evil])
        for text in (*format_explanation(explanation), *format_document(explanation).split("\n")):
            assert text.isprintable(), text
    only = explain(registry_of(claim, targets=Targets(services={})), "a.example.org", ttl=5)
    assert all(line.isprintable() for line in format_explanation(only))


def test_what_a_tenant_writes_controls_no_terminal() -> None:
    registry = registry_of(ingress("a.example.org", ingress_class="x\x7f\x9b31m\u202e"))
    octets = b"".join(format_explanation_json(registry, "a.example.org", ttl=5, notes=()))
    assert octets.strip().decode("ascii").isprintable()
    assert "x\x7f\x9b31m\u202e" in json.loads(octets)["answer"].values()


def test_the_document_is_json_of_all_that_is_known() -> None:
    explanation = explain(registry_of(ingress("a.example.org", ingress_class="nginx")), "a.example.org", ttl=5)
    document = json.loads(format_document(explanation))
    assert document["answer"] == {
        "hostname": "a.example.org",
        "reach": "exact",
        "addresses": [RELAY],
        "origin": {"kind": "Ingress", "name": "web", "namespace": "shop", "created": OLD},
        "class_name": "nginx",
        "leads": "",
        "forwarded": False,
    }
    assert (document["target"], document["ttl"], document["left_out"]) == (f"--target {RELAY}", 5, [])


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{}", id="no field"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'"\xff"', id="no UTF-8"),
        pytest.param(b"[" * 1_000_000, id="too deep"),
        pytest.param(b'{"x":' * 100_000, id="an unknown field too deep"),
        pytest.param(b'{"name":"a","answer":{"hostname":"a"}}', id="half an answer"),
    ],
)
def test_any_other_document_than_an_explanation_is_a_value_error(octets: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_explanation(octets)


def test_a_claim_that_waits_for_the_name_of_another_namespace_is_shown_with_its_time() -> None:
    registry = Registry(targets=Targets((RELAY,)), guards=Guards(), holds=Holds(600))
    for day, namespace in enumerate(("shop", "thief"), 1):
        origin = Origin("Ingress", "web", namespace, f"2026-01-0{day}T00:00:00Z")
        registry.replace("Ingress", f"{namespace}/web", [Claim("a.example.org", Reach.NAME, origin)])
    list(registry.changes(0))
    registry.holds.begin()
    registry.replace("Ingress", "shop/web", [])
    list(registry.changes(1_000_000_000))
    assert text_of(registry, "a.example.org") == (
        "a.example.org is not in the table: queries for it are forwarded\n"
        "  excluded  Ingress thief/web claims it: "
        "namespace shop has the name: it waits until 2001-09-09T01:56:40Z (--hold)"
    )


def test_a_name_whose_target_is_not_ready_has_the_reason_and_no_wildcard_takes_it() -> None:
    host, wildcard = ingress("app.example.org"), ingress("*.example.org", target="192.0.2.4")
    registry = registry_of(
        host, wildcard, targets=Targets(("service:edge/relay",), services={"edge/relay": ("10.96.0.1",)})
    )
    assert "is answered with 10.96.0.1" in text_of(registry, "app.example.org")
    registry.set_services({"edge/relay": ("10.96.0.1",)}, unready=frozenset(["edge/relay"]))
    assert explained(registry, "app.example.org").answer is None
    assert [one.reason for one in explained(registry, "app.example.org").left_out] == [
        "no endpoint of its target is ready (service:edge/relay)",
        f"{host.origin} has app.example.org, and no endpoint of its target is ready",
    ]
    assert "is answered with 192.0.2.4" in text_of(registry, "other.example.org")


# --- Asked by ---

ASKED: Final = Asking("app.example.org", "192.0.2.7", "", 1_795_694_400.0)


def asked_of(recent: RecentClients | None, name: str = "App.example.org.") -> Explanation:
    registry = registry_of(ingress("app.example.org"))
    return parse_explanation(b"".join(format_explanation_json(registry, name, ttl=5, notes=(), recent=recent)))


def test_it_lists_who_asked_in_the_last_minute() -> None:
    recent = RecentClients()
    for one in (ASKED, ASKED, ASKED._replace(client="2001:db8::7", subnet="198.51.100.0/24", time=1_795_694_399.0)):
        recent.add(one)
    explanation = asked_of(recent)
    assert explanation.asked_by == (
        AskedBy("192.0.2.7", 2, "2026-11-26T12:00:00.000Z"),
        AskedBy("2001:db8::7", 1, "2026-11-26T11:59:59.000Z", "198.51.100.0/24"),
    )
    assert list(format_explanation(explanation))[-2:] == [
        "  asked by  192.0.2.7, 2 times in the last minute, last at 2026-11-26T12:00:00.000Z",
        "  asked by  2001:db8::7 for 198.51.100.0/24, once in the last minute, last at 2026-11-26T11:59:59.000Z",
    ]


def test_a_name_that_no_client_asked_for_is_told_from_no_record() -> None:
    assert list(format_explanation(asked_of(RecentClients())))[-1] == "  asked by  no client in the last minute"
    explanation = asked_of(None)
    assert explanation.asked_by is None
    assert "asked by" not in "\n".join(format_explanation(explanation))


def test_a_name_that_is_not_in_the_table_has_clients_too() -> None:
    recent = RecentClients()
    recent.add(ASKED._replace(name="gone.example.org"))
    assert [one.client for one in asked_of(recent, "gone.example.org").asked_by or ()] == ["192.0.2.7"]


def test_the_answer_of_an_older_server_is_read() -> None:
    document = json.loads(format_document(asked_of(RecentClients())))
    assert document.pop("asked_by") == []
    assert parse_explanation(json.dumps(document).encode()).asked_by is None
