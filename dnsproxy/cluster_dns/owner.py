"""Owner: the controller or tool that writes an object, and what it does to an edit by another client.

The law: the object's own marks decide (labels, annotations, owner references, field managers), never its name or the
cloud; each result names its mark. The first matching rule wins, and the nearest owner comes first: a Helm release that
Flux renders belongs to Flux.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from sidecar.kubernetes.structs.metadata import FieldManager, Metadata
from sidecar.values.text import cut

_LONGEST: Final = 320
"""Characters of a mark; an annotation may have 256 KiB."""
OUR_MANAGER: Final = "switchback"
"""The field manager of dnsproxy's own writes, which is never an owner."""


class Habit(Enum):
    """What the owner does to an edit by another client."""

    KEEPS = "keeps"
    """The edit stays."""
    REVERTS = "reverts"
    """The owner undoes the edit: at once, at its next reconciliation, or with its next upgrade."""
    UNKNOWN = "unknown"


class Form(Enum):
    """The configuration to give to an owner that would undo an edit."""

    EKS_ADDON = "EKS add-on configuration values"
    HELM_CHART_CONFIG = "RKE2 HelmChartConfig"
    OPENSHIFT_DNS = "OpenShift DNS custom resource"
    KOPS_CLUSTER = "kops cluster spec"
    K0S_CLUSTER = "k0s cluster configuration"
    HELM_VALUES = "values of the coredns Helm chart"
    STANZA = "stanza for the Corefile"


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of an object."""

    name: str
    """In words: `the EKS add-on`."""
    habit: Habit
    remark: str
    """What happens to an edit, as a sentence without its full stop."""
    evidence: str
    """The mark that identifies the owner; empty if there is none."""
    form: Form | None = None
    """The configuration for an owner that reverts edits."""


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    habit: Habit
    remark: str
    form: Form | None = None
    labels: tuple[tuple[str, str], ...] = ()
    """Key and value; an empty value matches any value."""
    annotations: tuple[tuple[str, str], ...] = ()
    managers: tuple[str, ...] = ()
    references: tuple[tuple[str, str], ...] = ()
    """API group and kind of an owner reference."""

    def owner(self, evidence: str) -> Owner:
        return Owner(self.name, self.habit, self.remark, evidence, self.form)


_RULES: Final = (
    _Rule(
        "the OpenShift DNS operator",
        Habit.REVERTS,
        "the operator undoes edits at once",
        Form.OPENSHIFT_DNS,
        labels=(("dns.operator.openshift.io/owning-dns", ""),),
        references=(("operator.openshift.io", "DNS"),),
    ),
    _Rule(
        "the EKS add-on",
        Habit.REVERTS,
        "EKS undoes edits, unless the add-on was deleted with --preserve",
        Form.EKS_ADDON,
        managers=("eks",),
    ),
    _Rule(
        "kops",
        Habit.REVERTS,
        "`kops update cluster` renders it again",
        Form.KOPS_CLUSTER,
        labels=(("addon.kops.k8s.io/name", ""), ("app.kubernetes.io/managed-by", "kops")),
        managers=("kops",),
    ),
    _Rule(
        "k0s",
        Habit.REVERTS,
        "the k0s controller applies its own version again and again",
        Form.K0S_CLUSTER,
        labels=(("k0s.k0sproject.io/stack", ""),),
    ),
    _Rule(
        "RKE2's chart rke2-coredns",
        Habit.REVERTS,
        "RKE2 renders its chart again with each upgrade and each change of the HelmChartConfig",
        Form.HELM_CHART_CONFIG,
        annotations=(("meta.helm.sh/release-name", "rke2-coredns"),),
    ),
    _Rule(
        "k3s",
        Habit.REVERTS,
        "every start of a k3s server renders it again",
        Form.STANZA,
        annotations=(("objectset.rio.cattle.io/owner-gvk", "k3s.cattle.io/v1, Kind=Addon"),),
    ),
    _Rule(
        "a Flux HelmRelease",
        Habit.REVERTS,
        "Flux renders it again",
        Form.HELM_VALUES,
        labels=(("helm.toolkit.fluxcd.io/name", ""),),
    ),
    _Rule(
        "a Flux Kustomization",
        Habit.REVERTS,
        "Flux applies its own version again and again",
        Form.STANZA,
        labels=(("kustomize.toolkit.fluxcd.io/name", ""),),
        managers=("kustomize-controller",),
    ),
    _Rule(
        "Argo CD",
        Habit.REVERTS,
        "Argo CD shows edits as drift, and undoes them where it heals itself",
        Form.STANZA,
        labels=(("argocd.argoproj.io/instance", ""),),
        annotations=(("argocd.argoproj.io/tracking-id", ""), ("argocd.argoproj.io/installation-id", "")),
        managers=("argocd-controller", "argocd-application-controller"),
    ),
    _Rule(
        "Gardener",
        Habit.REVERTS,
        "Gardener undoes edits at its next round",
        Form.STANZA,
        labels=(("resources.gardener.cloud/managed-by", ""),),
    ),
    _Rule(
        "DigitalOcean",
        Habit.REVERTS,
        "DigitalOcean may undo edits at any time",
        Form.STANZA,
        labels=(("doks.digitalocean.com/managed", "true"),),
    ),
    _Rule(
        "a Helm release",
        Habit.REVERTS,
        "the next upgrade of the release renders it again",
        Form.HELM_VALUES,
        annotations=(("meta.helm.sh/release-name", ""),),
        managers=("helm", "helm-controller"),
    ),
    _Rule(
        "the cluster's addon manager",
        Habit.REVERTS,
        "the addon manager undoes edits within a minute",
        Form.STANZA,
        labels=(("addonmanager.kubernetes.io/mode", "Reconcile"),),
    ),
    _Rule(
        "the cluster's addon manager",
        Habit.KEEPS,
        "the addon manager creates it if it is missing and leaves edits alone",
        labels=(("addonmanager.kubernetes.io/mode", "EnsureExists"),),
    ),
    _Rule(
        "Talos",
        Habit.KEEPS,
        "edits stay until `talosctl upgrade-k8s` applies the bootstrap manifests again",
        annotations=(("config.k8s.io/owning-inventory", "talos-bootstrap-manifests-inventory"),),
        managers=("talos",),
    ),
    _Rule(
        "kubeadm",
        Habit.KEEPS,
        "`kubeadm upgrade` carries edits over",
        managers=("kubeadm",),
    ),
)


def owner_of(metadata: Metadata) -> Owner:
    """The owner of an object."""
    for rule in _RULES:
        evidence = next(_evidence(rule, metadata), None)
        if evidence is not None:
            return _named(rule.owner(cut(evidence, _LONGEST)), metadata)
    writer = last_writer(metadata)
    if writer is None:
        return Owner("an unknown owner", Habit.UNKNOWN, "it is unknown whether edits stay", "")
    return Owner(f"{writer}, the last writer", Habit.UNKNOWN, "it is unknown whether edits stay", f"manager {writer}")


def last_writer(metadata: Metadata) -> str | None:
    """The field manager of the last write by another client; None if unknown."""
    written = [(manager.time or "", manager.manager) for manager in _writers(metadata) if manager.manager]
    return cut(max(written)[1], _LONGEST) if written else None


def _evidence(rule: _Rule, metadata: Metadata) -> Iterator[str]:
    yield from _marks("label", rule.labels, metadata.labels or {})
    yield from _marks("annotation", rule.annotations, metadata.annotations or {})
    for reference in metadata.owner_references or ():
        group = reference.api_version.rpartition("/")[0]
        if (group, reference.kind) in rule.references:
            yield f"owned by {reference.kind} {reference.name}"
    for writer in _writers(metadata):
        if writer.manager in rule.managers:
            yield f"manager {writer.manager}"


def _marks(sort: str, wanted: tuple[tuple[str, str], ...], there: Mapping[str, str]) -> Iterator[str]:
    for key, value in wanted:
        if key in there and value in ("", there[key]):
            yield f"{sort} {key}={there[key]}"


def _writers(metadata: Metadata) -> list[FieldManager]:
    return [
        manager
        for manager in metadata.managed_fields or ()
        if manager.manager != OUR_MANAGER and not manager.subresource
    ]


def _named(owner: Owner, metadata: Metadata) -> Owner:
    """An object of a chart takes Helm values, also if Argo CD renders the chart."""
    is_chart = "helm.sh/chart" in (metadata.labels or {})
    if owner.form is Form.STANZA and is_chart:
        return Owner(owner.name, owner.habit, owner.remark, owner.evidence, Form.HELM_VALUES)
    return owner
