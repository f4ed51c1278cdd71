"""The table of clusters in deploy/README.md against what each distribution really has.

The law: each name of the table has a file of facts (tests/deploy/distributions), and each file a name; a name whose
facts nobody could check is marked. Where there are facts, our recorded clusters have them, and what we do there is what
the table says. A real CoreDNS loads the Corefiles of all recorded clusters with our stanza, and a real API server the
objects: tests/peers/test_corefile_corpus.py, tests/deploy/test_operate_rights.py.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.cluster_dns.requests import CONFIG_MAP, SERVICE
from dnsproxy.corefile.model import Directive, Import, ServerBlock
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.install.report.printing import print_for
from dnsproxy.install.report.rights import Grant
from tests.kit.distributions import FOLDER, UNVERIFIED, Distribution, Outline, load_distributions
from tests.kit.laws import ROOT
from tests.kit.manifest_cluster import NAMES, Manifest, discover, manifests, pick
from tests.kit.manifest_edits import wanted
from tests.kit.one_manifest import OPERATE, SERVE, UPSTREAM_CONFIG_MAPS, is_granted

DEPLOY: Final = ROOT / "deploy"
README: Final = (DEPLOY / "README.md").read_text(encoding="utf-8")
ALL: Final = load_distributions()
RECORDED: Final = [(name, cluster) for name, one in ALL.items() for cluster in one.recorded]
CHECKED: Final = [(name, cluster) for name, cluster in RECORDED if ALL[name].checked]
OUTSIDE: Final = {"coreweave", "idpbuilder", "outscale"}
"""Recorded clusters that are no row of the table, but of the guide (docs/pages/install.md)."""
SAID: Final = {
    "corefile": "into the Corefile",
    "import": "a key of our own",
    "stub-domains": "stub domains",
    "override-rewrites": "`rewrite` lines",
    "print": "printed",
}
COMMIT: Final = re.compile(r"[0-9a-f]{40}")


def rows() -> dict[str, str]:
    """Each row of the table, by the names in its first cell; the mark belongs to a name."""
    table = README.partition("\n## Your distribution\n\n")[2].partition("\n\n")[0]
    lines = table.splitlines()[2:]
    return {name: line for line in lines for name in line.split("|")[1].strip().split(", ")}


def facts_of(name: str) -> Distribution:
    """Those of the file, or of the one that it is like."""
    return ALL[ALL[name].like or name]


# --- the table ---


def test_every_name_of_the_table_has_a_file_and_every_file_a_name() -> None:
    assert sorted(name.removesuffix(UNVERIFIED) for name in rows()) == sorted(one.named for one in ALL.values())


def test_a_name_is_marked_exactly_if_it_was_not_checked() -> None:
    for name, one in ALL.items():
        assert one.named + (UNVERIFIED if not one.checked else "") in rows(), name
        assert bool(one.reason) is not one.checked, name


def test_the_page_says_what_the_mark_means_and_where_the_sources_are() -> None:
    assert "**Unverified**: nobody could compare this name" in README
    assert f"`{FOLDER.relative_to(ROOT)}` has a file for each name" in README


def test_a_checked_name_has_a_source_with_its_version() -> None:
    for name, one in ALL.items():
        if not one.checked:
            continue
        assert one.source, name
        for source in one.source:
            assert source.url.startswith("https://") or (source.repository and source.path), name
            assert source.version, name
            assert not source.commit or COMMIT.fullmatch(source.commit), name
        assert one.like or one.recorded, name


def test_every_recorded_cluster_belongs_to_one_name() -> None:
    assert sorted(cluster for _, cluster in RECORDED) == sorted(set(NAMES) - OUTSIDE)


def test_the_row_says_what_happens_and_names_a_folder_that_is_there() -> None:
    for name, one in ALL.items():
        method = one.method or facts_of(name).method
        if not method:
            continue
        row = rows()[one.named + (UNVERIFIED if not one.checked else "")]
        assert SAID[method] in row, name
        folder = re.search(r"\| `\.\./(deploy[a-z0-9/]*)`", row)
        assert folder is not None, name
        assert (ROOT / folder[1] / "kustomization.yaml").is_file(), name
        assert ("overlays/" in folder[1]) <= (method == "print"), name


# --- the recorded clusters have the facts ---


def found_in(objects: list[Manifest], kind: str, namespace: str, name: str) -> Manifest | None:
    matching = (one for one in objects if one["kind"] == kind and one["metadata"]["namespace"] == namespace)
    return next((one for one in matching if one["metadata"]["name"] == name), None)


@pytest.mark.parametrize(("name", "cluster"), CHECKED)
def test_the_objects_are_those_of_the_distribution(name: str, cluster: str) -> None:
    service = ALL[name].service
    if service is not None:
        real = found_in(manifests(cluster), "Service", service.namespace, service.name)
        assert real is not None
        assert service.labels.items() <= real["metadata"].get("labels", {}).items()
        assert service.selector == real["spec"]["selector"]
        ports = [f"{port['name']} {port['port']}/{port['protocol']}" for port in real["spec"]["ports"]]
        assert set(service.ports) <= set(ports)
    for facts in ALL[name].workload:
        real = found_in(manifests(cluster), facts.kind, facts.namespace, facts.name)
        assert real is not None
        assert facts.labels.items() <= real["spec"]["template"]["metadata"]["labels"].items()

    for one in ALL[name].config_map:
        real = found_in(manifests(cluster), "ConfigMap", one.namespace, one.name)
        if one.absent and real is None:
            continue
        assert real is not None
        assert set(one.keys) <= (real.get("data") or {}).keys()
        for field in ("labels", "annotations"):
            assert getattr(one, field).items() <= real["metadata"].get(field, {}).items()


def lines_of(block: ServerBlock) -> Iterator[str]:
    """The keys, and the lines in their order."""
    yield " ".join(key.text for key in block.keys)
    entries: list[Directive | Import] = sorted([*block.directives, *block.imports], key=lambda one: one.index)
    for entry in entries:
        if isinstance(entry, Directive):
            yield " ".join([entry.name, *(word.text for word in entry.arguments)])
        else:
            yield f"import {entry.pattern}"


def outlines() -> Iterator[Any]:
    for name, cluster in CHECKED:
        for at, outline in enumerate(ALL[name].corefile):
            if not outline.recorded or cluster in outline.recorded:
                yield pytest.param(outline, cluster, id=f"{cluster}-{at}")


@pytest.mark.parametrize(("outline", "cluster"), list(outlines()))
def test_the_corefile_has_the_lines_of_the_distribution_in_their_order(outline: Outline, cluster: str) -> None:
    real = found_in(manifests(cluster), "ConfigMap", outline.namespace, outline.config_map)
    assert real is not None
    corefile = parse_corefile(real["data"][outline.key])
    blocks = [list(lines_of(block)) for block in corefile.blocks]
    shortened = [
        [line if not f"{line} ".startswith(f"{fact} ") else fact for line, fact in zip(block, facts, strict=False)]
        + block[len(facts) :]
        for block, facts in zip(blocks, outline.blocks, strict=False)
    ]
    assert shortened == outline.blocks
    assert len(blocks) == len(outline.blocks)
    assert [one.pattern for one in corefile.imports] == outline.imports


# --- what we do there ---


@pytest.mark.parametrize(("name", "cluster"), RECORDED)
def test_the_method_and_the_owner_are_those_that_the_facts_promise(name: str, cluster: str) -> None:
    found = discover(manifests(cluster))
    choice = choose_method(found)
    assert choice.method is not None
    assert choice.method.value == ALL[name].method
    if ALL[name].owner:
        assert found.asked_by_pods is not None
        assert found.asked_by_pods.corefile is not None
        assert found.asked_by_pods.corefile.owner.name == ALL[name].owner


def marked(objects: list[Manifest], mark: str) -> list[Manifest]:
    """The objects, with the mark of another owner on the Corefile's ConfigMap."""
    sort, _, text = mark.partition(" ")
    metadata = pick(objects, "ConfigMap", "coredns")["metadata"]
    if sort == "manager":
        metadata["managedFields"] = [{"manager": text, "operation": "Apply", "time": "2026-03-02T10:00:00Z"}]
    else:
        key, _, value = text.partition("=")
        metadata.setdefault(f"{sort}s", {})[key] = value
    return objects


@pytest.mark.parametrize(("name", "mark"), [(name, mark) for name, one in ALL.items() for mark in one.marks])
def test_an_owner_of_any_cluster_is_known_by_each_of_its_marks(name: str, mark: str) -> None:
    (cluster,) = facts_of(name).recorded
    found = discover(marked(copy.deepcopy(manifests(cluster)), mark))
    assert choose_method(found).method is Method(ALL[name].method)
    assert found.asked_by_pods is not None
    assert found.asked_by_pods.corefile is not None
    assert ALL[name].owner in found.asked_by_pods.corefile.owner.name


NAMED: Final = [name for name, one in ALL.items() if one.checked and one.role and not one.like]


@pytest.mark.parametrize("name", NAMED)
def test_the_roles_have_every_name_that_a_checked_distribution_uses(name: str) -> None:
    one = ALL[name]
    places = [(SERVICE.plural, one.service.namespace, one.service.name)] if one.service else []
    places += [(CONFIG_MAP.plural, facts.namespace, facts.name) for facts in one.config_map]
    missing = [place for place in places if not is_granted(Grant(place[1], "", place[0], place[2], "get"), OPERATE)]
    assert missing == []
    followed = {f"{facts.namespace}/{facts.name}" for facts in one.config_map} & set(UPSTREAM_CONFIG_MAPS)
    for place in followed:
        namespace, _, config_map = place.partition("/")
        assert is_granted(Grant(namespace, "", "configmaps", config_map, "watch"), SERVE)
    for cluster in one.recorded:
        target = choose_method(discover(manifests(cluster))).target
        if target is not None:
            assert is_granted(Grant(target.source.namespace, "", "configmaps", target.source.name, "patch"), OPERATE)


def value_at(document: Any, path: str) -> Any:
    for word in path.split("."):
        document = document[int(word)] if isinstance(document, list) else document[word]
    return document


@pytest.mark.parametrize("name", [name for name, one in ALL.items() if one.api])
def test_what_is_printed_is_where_the_owner_takes_it(name: str) -> None:
    api = ALL[name].api
    assert api is not None
    for cluster in ALL[name].recorded:
        found = discover(manifests(cluster))
        text = yaml.safe_load(print_for(found, choose_method(found), wanted("example.org")).text)
        assert value_at(text, api.path)
        assert {path: value_at(text, path) for path in api.fixed} == api.fixed


@pytest.mark.parametrize("name", [name for name, one in ALL.items() if one.api and one.role])
def test_the_overlay_names_that_place(name: str) -> None:
    api = ALL[name].api
    assert api is not None
    folder = re.search(r"`\.\./(deploy/overlays/[a-z0-9]+)`", rows()[ALL[name].named])
    assert folder is not None
    text = (ROOT / folder[1] / "kustomization.yaml").read_text(encoding="utf-8")
    place = api.path.partition(".0.")[0].removeprefix("spec.")
    assert place in text or all(api.fixed[path] in text for path in ("kind", "metadata.name"))
