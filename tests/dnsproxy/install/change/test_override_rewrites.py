"""The method override-rewrites: the key of a cozystack tenant, its neighbours, and what an uninstall leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.traces import find_traces
from dnsproxy.corefile.rewrite_lines import MOST, Rewrite, format_rewrites
from dnsproxy.corefile.stanza import BEGIN, END
from dnsproxy.dns.names import Reach
from dnsproxy.install.change.config_map import Edits, Wanted
from dnsproxy.install.change.drift import find_drift
from dnsproxy.install.change.override_rewrites import standing_rewrites
from dnsproxy.install.change.planning import plan_apply
from dnsproxy.install.change.removal import plan_removal
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from dnsproxy.install.report.rights import grants_of
from tests.dnsproxy.cluster_dns.test_rewrite_place import tenant
from tests.dnsproxy.corefile.test_rewrite_lines import rewrites as any_rewrite
from tests.dnsproxy.install.change.test_rewrite_choice import any_labels, live, name, one_label
from tests.kit.manifest_cluster import Manifest, discover, pick
from tests.kit.manifest_edits import play, without_versions

KEY: Final = "switchback.override"
NAMES: Final = (name("app.example.org"), name("shop.example.net", "web/other"))


def plan(objects: list[Manifest], said: LiveRewrites | None = None, *zones: str) -> Edits:
    found = discover(objects)
    choice = choose_method(found, Method.OVERRIDE_REWRITES)
    return plan_apply(found, choice, Wanted((), zones, live(*NAMES) if said is None else said))


def custom(objects: list[Manifest]) -> dict[str, Any]:
    return dict(pick(objects, "ConfigMap", "coredns-custom").get("data") or {})


def text_of(*rewrites: Rewrite) -> str:
    return "".join(f"{line}\n" for line in (BEGIN, *format_rewrites(rewrites, "cluster.local"), END))


def test_a_tenants_config_map_gets_one_key_and_keeps_the_rest() -> None:
    objects = tenant(other_override="log\n")
    edits = plan(objects)
    assert edits.method is Method.OVERRIDE_REWRITES
    (change,) = edits.changes
    assert (change.verb, [entry.name for entry in change.data]) == ("patch", [KEY])
    after = play(objects, edits)
    assert custom(after) == {"other.override": "log\n", KEY: text_of(*NAMES)}
    assert not plan(after).changed


def test_a_config_map_that_is_absent_is_created_and_deleted() -> None:
    objects = [one for one in tenant() if one["metadata"]["name"] != "coredns-custom"]
    edits = plan(objects)
    assert edits.changes[0].verb == "create"
    verbs = {(one.name, one.verb) for one in grants_of((), edits.changes)}
    assert verbs == {("coredns-custom", verb) for verb in ("patch", "create", "delete")}
    after = play(objects, edits)
    assert not plan(after).changed
    out = plan_removal(discover(after))
    assert out.changes[0].removes
    assert without_versions(play(after, out)) == without_versions(objects)


@pytest.mark.parametrize(
    "before",
    [{}, {"other_override": "log\n"}, {"switchback_override": f"{BEGIN}\n{END}\n"}],
    ids=["no data", "a key", "an empty key"],
)
def test_an_uninstall_leaves_what_was_there_before(before: dict[str, str]) -> None:
    objects = tenant(**before)
    after = play(objects, plan(objects))
    left = play(after, plan_removal(discover(after)))
    expected = {key.replace("_", "."): text for key, text in before.items() if "switchback" not in key}
    assert custom(left) == expected
    assert not plan_removal(discover(left)).changed


def test_text_of_others_in_the_key_stays_around_ours() -> None:
    objects = tenant(switchback_override=f"# theirs\n{BEGIN}\n{END}\nlog\n")
    after = play(objects, plan(objects))
    assert custom(after)[KEY] == f"# theirs\n{text_of(*NAMES)}log\n"
    assert custom(play(after, plan_removal(discover(after))))[KEY] == "# theirs\nlog\n"


def test_a_key_of_others_is_not_touched() -> None:
    with pytest.raises(ChangeRefused, match="exists and is not dnsproxy's"):
        plan(tenant(switchback_override="rewrite name app.example.org other.example.net\n"))


def test_damaged_markers_are_not_touched() -> None:
    with pytest.raises(ChangeRefused, match="its markers are damaged: BEGIN, not BEGIN END"):
        plan(tenant(switchback_override=f"{BEGIN}\nlog\n"))


def test_lines_that_were_edited_by_hand_are_written_again() -> None:
    objects = tenant(switchback_override=text_of(*NAMES).replace("app.", "other."))
    assert custom(play(objects, plan(objects)))[KEY] == text_of(*NAMES)


def test_a_stanza_that_stood_in_the_key_becomes_lines() -> None:
    objects = tenant(switchback_override=f"{BEGIN}\nforward . 10.96.0.53 /etc/resolv.conf\n{END}\n")
    assert custom(play(objects, plan(objects)))[KEY] == text_of(*NAMES)


@given(st.lists(any_rewrite(), unique_by=lambda one: one.key, max_size=6))
def test_a_plan_that_was_applied_is_empty_and_taken_out_restores_the_bytes(rows: list[Rewrite]) -> None:
    said = live(*(one for one in rows if one.service), exempt=tuple(one for one in rows if not one.service))
    objects = tenant(other_override="log\n")
    after = play(objects, plan(objects, said))
    assert not plan(after, said).changed
    (trace,) = find_traces(discover(after))
    assert (trace.method, trace.fault) == (Method.OVERRIDE_REWRITES, "")
    assert custom(play(after, plan_removal(discover(after)))) == custom(objects)


def test_a_name_leaves_when_the_table_says_so_and_stays_while_a_pod_is_silent() -> None:
    objects = play(tenant(), plan(tenant()))
    silent = LiveRewrites(doubt="192.0.2.7:8081: no server answers there")
    kept = plan(objects, silent)
    assert not kept.changed
    assert any(note.startswith("kept, because names may be missing (192.0.2.7:8081") for note in kept.notes)
    assert custom(play(objects, plan(objects, live(NAMES[0]))))[KEY] == text_of(NAMES[0])
    nothing = plan(objects, live())
    assert custom(play(objects, nothing))[KEY] == text_of()
    assert any("nothing is rewritten yet" in note for note in nothing.notes)


def test_without_any_answer_and_any_line_there_is_nothing_to_write() -> None:
    with pytest.raises(ChangeRefused, match="no dnsproxy gave the names of its table: no pod is ready; --from names"):
        plan(tenant(), LiveRewrites(doubt="no pod is ready"))


def test_a_service_that_the_clusters_dns_lost_takes_its_names_with_it_whatever_dnsproxy_says() -> None:
    objects = play(tenant(), plan(tenant()))
    for said in (live(*NAMES), LiveRewrites(doubt="all silent")):
        edits = plan(objects, replace(said, absent=frozenset(["web/other"])))
        assert custom(play(objects, edits))[KEY] == text_of(NAMES[0])
        assert "left out: shop.example.net: the cluster's DNS has no address of Service web/other" in edits.notes


def test_the_notes_count_what_is_left_out_and_say_what_to_do() -> None:
    many = tuple(name(f"n{number:04}.example.org") for number in range(MOST + 7))
    edits = plan(tenant(), replace(live(*many), plain=4, left_out=1000))
    assert edits.rewrites is not None
    assert len(edits.rewrites.rewrites) == MOST
    assert "4 names of dnsproxy's table have plain addresses and no Service: they are answered as before" in edits.notes
    (beyond,) = [note for note in edits.notes if "beyond" in note]
    assert beyond.startswith("1007 names are left out beyond 500 lines, such as n0500.example.org, n0501")
    assert "a wildcard host is one line for all its names" in beyond


def test_the_records_of_an_apex_are_mentioned() -> None:
    notes = plan(tenant(), live(name("example.org"), name("app.example.net"))).notes
    assert "the cluster's DNS has no MX, TXT or other records any more of example.org" in notes


@pytest.mark.parametrize(
    ("zones", "names"),
    [
        ((), ["app.example.org", "shop.example.net"]),
        ((".",), ["app.example.org", "shop.example.net"]),
        (("example.net",), ["shop.example.net"]),
        (("example.com",), []),
    ],
)
def test_zones_limit_the_names(zones: tuple[str, ...], names: list[str]) -> None:
    edits = plan(tenant(), None, *zones)
    assert edits.rewrites is not None
    assert list(edits.rewrites.names) == names


def test_a_name_of_another_file_is_left_to_it() -> None:
    objects = tenant(ouroboros_override="rewrite name app.example.org ingress.web.svc.cluster.local\n")
    edits = plan(objects, live(*NAMES, one_label("*.example.org")))
    assert edits.rewrites is not None
    assert edits.rewrites.names == ("*.example.org", "shop.example.net")
    # Its own line comes first (o before s), and without it the name would keep its own answer.
    assert name("app.example.org", "") in edits.rewrites.rewrites


def test_a_server_block_of_others_keeps_its_names_under_a_wildcard() -> None:
    objects = tenant()
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] += "\nforward.example.org {\n    forward . 192.0.2.1\n}\n"
    edits = plan(objects, live(any_labels("*.example.org"), name("a.forward.example.org")))
    assert edits.rewrites is not None
    assert edits.rewrites.names == ("*.example.org",)
    left_out = "left out: a.forward.example.org: names of forward.example.org go to the server block"
    assert any(note.startswith(left_out) for note in edits.notes)


def drift_of(objects: list[Manifest], said: LiveRewrites | None, *zones: str) -> str | None:
    found = discover(objects)
    drift = find_drift(found, find_traces(found), live=said, within=zones)
    return None if drift is None else drift.diff or drift.refusal


def test_drift_is_what_an_install_would_change() -> None:
    objects = play(tenant(), plan(tenant()))
    assert drift_of(objects, live(*NAMES)) is None
    assert drift_of(objects, None) is None
    assert drift_of(objects, live(*NAMES, name("new.example.org")), "example.net") is not None
    diff = drift_of(objects, live(*NAMES, name("new.example.org")))
    assert diff is not None
    assert "+rewrite stop name exact new.example.org. relay.switchback.svc.cluster.local. answer auto" in diff
    gone = drift_of(objects, live(NAMES[0]))
    assert gone is not None
    assert "-rewrite stop name exact shop.example.net." in gone


def test_blanks_and_comments_are_no_drift() -> None:
    text = text_of(*NAMES).replace("rewrite stop", "  rewrite   stop").replace(END, f"# of the owner\n{END}")
    assert drift_of(tenant(switchback_override=text), live(*NAMES)) is None


def test_a_changed_cluster_domain_is_drift() -> None:
    objects = play(tenant(), plan(tenant()))
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("cluster.local", "cozy.local")
    diff = drift_of(objects, live(*NAMES))
    assert diff is not None
    assert "+rewrite stop name exact app.example.org. relay.switchback.svc.cozy.local. answer auto" in diff


def test_a_corefile_in_which_the_lines_no_longer_work_is_drift_with_a_reason() -> None:
    objects = play(tenant(), plan(tenant()))
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("    cache 30\n", "    autopath @kubernetes\n    cache 30\n")
    refusal = drift_of(objects, live(*NAMES))
    assert refusal is not None
    assert refusal.startswith("its plugin autopath (line 14) answers names of pods' search lists past every rewrite")


@pytest.mark.parametrize("text", [None, "", "log\n", BEGIN, text_of(*NAMES) + "log\n"])
def test_what_is_no_line_of_ours_stands_for_nothing(text: str | None) -> None:
    assert standing_rewrites(text) == ()


def test_the_lines_of_a_key_stand() -> None:
    assert standing_rewrites(text_of(*NAMES)) == tuple(sorted(NAMES, key=lambda one: one.hostname.split(".")[::-1]))


def test_a_reach_is_no_other_name() -> None:
    both = (one_label("*.example.org"), any_labels("*.example.org", "web/other"))
    objects = play(tenant(), plan(tenant(), live(*both)))
    assert set(standing_rewrites(custom(objects)[KEY])) == set(both)
    assert {one.reach for one in both} == {Reach.ONE_LABEL, Reach.ANY_LABELS}
