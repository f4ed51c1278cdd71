"""The method print: the text for the owner of a cluster's DNS, whose controller would undo an edit.

The law: nothing is written. The text is complete and has the form of the place where the owner configures the DNS; its
effect is that of the edit. If a key of our own or a stub domain would stay, the text is a manifest of that, because no
other program writes it. Pure.

Descriptions of the forms:

- docs.aws.amazon.com/eks/latest/userguide/updating-an-add-on.html; the add-on's schema has `corefile`
- docs.rke2.io/helm and docs.rke2.io/networking/networking_services, the HelmChartConfig of rke2-coredns
- docs.openshift.com, "DNS Operator": `servers` of dns.operator/default
- kops.sigs.k8s.io/cluster_spec: `kubeDNS.externalCoreFile`
- docs.k0sproject.io/stable/configuration: the patches of a component, and their types
- github.com/coredns/helm, charts/coredns/values.yaml
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from dnsproxy.cluster_dns.found import Found, FoundCorefile, Server
from dnsproxy.cluster_dns.method_choice import Choice, Method, choose_method
from dnsproxy.cluster_dns.owner import OUR_MANAGER, Form
from dnsproxy.cluster_dns.refusal import ChangeRefused, refusal_of
from dnsproxy.cluster_dns.routes import find_routes
from dnsproxy.corefile.markers import without_region
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import find_site
from dnsproxy.corefile.plan import Change, plan_install
from dnsproxy.corefile.stanza import END, format_address, format_begin
from dnsproxy.corefile.zones import ROOT
from dnsproxy.install.change.config_map import Wanted
from dnsproxy.install.change.planning import check_loop, plan_apply
from dnsproxy.install.change.zones import check_free, check_named, route_of
from dnsproxy.install.report.printing_values import chart_values, format_json, format_yaml


@dataclass(frozen=True, slots=True)
class Printed:
    """The text for the owner."""

    text: str
    """For stdout: YAML, JSON or lines of a Corefile, with a final line end."""
    where: str
    """The place for the text, as a sentence without a full stop; may contain text from the cluster."""
    apply: tuple[str, ...] = ()
    """Commands that apply it, in order; the user replaces NAME and FILE."""
    notes: tuple[str, ...] = ()
    """Sentences without a full stop: limits and side effects that a user may not expect."""


def print_for(found: Found, choice: Choice, wanted: Wanted) -> Printed:
    """The text for the owner of the DNS in `found`, which has to be read completely. Raises ChangeRefused.

    `choice` is the choice of the method print, or of another method whose edit the user wants to leave to the owner.
    """
    server = found.asked_by_pods
    if server is None:
        raise ChangeRefused(choice.why)
    lasting = choose_method(found)
    if lasting.method in (Method.IMPORT, Method.STUB_DOMAINS):
        return _print_config_map(found, lasting, wanted)
    if server.corefile is None or server.corefile.value is None:
        raise ChangeRefused(choice.why)
    check_loop(found, wanted)
    form = choice.form or server.corefile.owner.form or Form.STANZA
    printed = _PRINTERS[form](server, server.corefile, wanted)
    return replace(printed, notes=tuple(dict.fromkeys([*printed.notes, *choice.what_else])))


def _print_config_map(found: Found, choice: Choice, wanted: Wanted) -> Printed:
    """The keys of a ConfigMap that no other program writes, such as `coredns-custom` of AKS and k3s."""
    edits = plan_apply(found, choice, wanted)
    manifests = []
    for change in edits.changes:
        data = {entry.name: entry.new for entry in change.data if entry.new is not None}
        if not data:
            continue
        annotations = {entry.name: entry.new for entry in change.annotations if entry.new is not None}
        metadata: dict[str, Any] = {"name": change.source.name, "namespace": change.source.namespace}
        if annotations:
            metadata["annotations"] = annotations
        manifests.append(format_yaml({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
    where = f"these keys of the ConfigMap, in addition to its own: {choice.target}"
    # The key `stubDomains` may belong to another field manager; the text contains its present value.
    force = " --force-conflicts" if choice.method is Method.STUB_DOMAINS else ""
    apply = f"kubectl apply --server-side --field-manager={OUR_MANAGER}{force} -f FILE"
    return Printed("---\n".join(manifests), where, (apply,), edits.notes)


def _print_eks(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    change = _planned(server, corefile, wanted)
    read = "aws eks describe-addon --cluster-name NAME --addon-name coredns --query addon.configurationValues"
    write = "aws eks update-addon --cluster-name NAME --addon-name coredns"
    notes = (
        "configuration values are replaced as a whole: add again what the first command shows, such as tolerations",
        "from then on the whole Corefile is yours: an upgrade of EKS adds nothing to it",
    )
    return Printed(
        format_json({"corefile": change.new}),
        "the configuration values of the EKS add-on coredns",
        (read, f"{write} --configuration-values file://FILE"),
        (*notes, *change.notes),
    )


def _print_kops(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    change = _planned(server, corefile, wanted)
    spec = {"spec": {"kubeDNS": {"provider": "CoreDNS", "externalCoreFile": change.new}}}
    note = "an externalCoreFile is the whole Corefile: kops ignores its other options for the Corefile"
    return Printed(
        format_yaml(spec),
        "the kops cluster spec, under spec.kubeDNS, in addition to its present content",
        ("kops edit cluster --name NAME", "kops update cluster --name NAME --yes"),
        (note, *change.notes),
    )


def _print_k0s(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    change = _planned(server, corefile, wanted)
    target = {"kind": "ConfigMap", "name": corefile.source.name, "namespace": corefile.source.namespace}
    patch = {"type": _K0S_MERGE, "content": format_yaml({"data": {corefile.key: change.new}})}
    spec = {"spec": {"network": {"coreDNS": {"patches": [{"target": target, "patch": patch}]}}}}
    notes = (
        "k0s calls patches of its components experimental; 1.36.1 is the first version that has them",
        "the patch holds the whole Corefile: when you upgrade k0s, compare it with that of the new version",
    )
    return Printed(
        format_yaml(spec),
        "the ClusterConfig of k0s (k0s.yaml on each controller, or spec.k0s.config of k0sctl)",
        ("sudo k0s stop", "sudo k0s start"),
        (*notes, *change.notes),
    )


def _print_values(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    change = _planned(server, corefile, wanted)
    return Printed(
        format_yaml(_values_of(change, corefile)),
        "the values of the coredns Helm chart; if it is a part of another chart, under its name there",
        ("helm upgrade NAME coredns/coredns --namespace NAMESPACE --reuse-values -f FILE",),
        (_WHOLE_LIST, *change.notes),
    )


def _print_rke2(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    change = _planned(server, corefile, wanted)
    config = {
        "apiVersion": "helm.cattle.io/v1",
        "kind": "HelmChartConfig",
        "metadata": {"name": "rke2-coredns", "namespace": "kube-system"},
        "spec": {"valuesContent": format_yaml(_values_of(change, corefile))},
    }
    note = "if there is a HelmChartConfig rke2-coredns already, put the values into its valuesContent"
    return Printed(
        format_yaml(config),
        "a HelmChartConfig, which overrides the values of RKE2's own chart",
        ("kubectl get helmchartconfig -n kube-system rke2-coredns -o yaml", "kubectl apply -f FILE"),
        (note, _WHOLE_LIST, *change.notes),
    )


def _print_openshift(_server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    check_named(wanted.zones, "the DNS operator accepts servers for zones, but not for .")
    routes = find_routes(corefile)
    check_free(wanted.zones, routes)
    addresses = [format_address(address) for address in wanted.addresses]
    behind = [route_of(zone, routes.forwards(), wanted.zones).forward for zone in wanted.zones]
    known = {format_address(endpoint): None for forward in behind for endpoint in forward.endpoints()}
    plugin = {"policy": "Sequential", "upstreams": [*addresses, *known]}
    zones = [zone.removesuffix(".") for zone in wanted.zones]
    server_of_ours = {"name": OUR_MANAGER, "zones": zones, "forwardPlugin": plugin}
    spec = {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "DNS",
        "metadata": {"name": "default"},
        "spec": {"servers": [server_of_ours]},
    }
    notes = ["servers is one list: add this one to the servers there"]
    if not known:
        notes.append(
            "there is no second upstream, because a server of the DNS operator accepts only addresses: while no "
            "dnsproxy runs, names of these zones do not resolve; add the addresses of your resolvers after dnsproxy's"
        )
    if len(known) + len(addresses) > _OPENSHIFT_UPSTREAMS:
        raise ChangeRefused(f"the DNS operator accepts at most {_OPENSHIFT_UPSTREAMS} upstreams, and these are more")
    return Printed(
        format_yaml(spec),
        "the DNS operator's custom resource",
        ("oc edit dns.operator/default",),
        tuple(notes),
    )


def _print_stanza(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    change = _planned(server, corefile, wanted)
    lines = change.new.splitlines(keepends=True)
    mark = format_begin(len(wanted.addresses))
    begin = next(at for at, line in enumerate(lines) if mark in line)
    end = next(at for at, line in enumerate(lines) if END in line)
    text = "".join(lines[begin : end + 1])
    # A directive may stand on the line of its block's brace; then the marker stands there too.
    text = text[text.index(mark) :] if lines[begin].strip() != mark else text
    bare = without_region(parse_corefile(corefile.text))
    site = find_site(bare, wanted.zones or (ROOT,))
    line = bare.tokens[site.index].line
    where = f"the owner's source of {corefile.key} in ConfigMap {corefile.source}: block of ., right before line {line}"
    return Printed(text.replace("\r\n", "\n"), where, (), change.notes)


_PRINTERS: Final[dict[Form, Callable[[Server, FoundCorefile, Wanted], Printed]]] = {
    Form.EKS_ADDON: _print_eks,
    Form.HELM_CHART_CONFIG: _print_rke2,
    Form.OPENSHIFT_DNS: _print_openshift,
    Form.KOPS_CLUSTER: _print_kops,
    Form.K0S_CLUSTER: _print_k0s,
    Form.HELM_VALUES: _print_values,
    Form.STANZA: _print_stanza,
}
_WHOLE_LIST: Final = "servers is one list, and this one replaces yours: it contains everything except comments"
_OPENSHIFT_UPSTREAMS: Final = 15
_K0S_MERGE: Final = "MergePatch"
"""A JSON merge patch, RFC 7386: k0s refuses a ClusterConfig with another word for it (k0sproject/k0s,
pkg/apis/k0s/v1beta1/patches.go)."""


def _planned(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Change:
    """The whole Corefile with the stanza."""
    zones = wanted.zones or (ROOT,)
    try:
        return plan_install(corefile.text, addresses=wanted.addresses, zones=zones, coredns_version=server.version)
    except CorefileError as error:
        raise _refusal(error, corefile) from None


def _values_of(change: Change, corefile: FoundCorefile) -> dict[str, Any]:
    try:
        return chart_values(parse_corefile(change.new))
    except CorefileError as error:
        raise _refusal(error, corefile) from None


def _refusal(error: CorefileError, corefile: FoundCorefile) -> ChangeRefused:
    return refusal_of(error, f"{corefile.key} in ConfigMap {corefile.source}")
