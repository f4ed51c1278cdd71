"""Remedies for a short-circuited load balancer, as lines to type, the best first.

The law: the provider's own ipMode goes first, then ours, then a hostname; a side effect is named with its line. If
none of them fits, only the relay is left (cures.py). Nothing here runs a command. Tested in
tests/dnsproxy/doctor/judge/test_remedies.py, test_providers.py and test_provider_rows.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote
from typing import Final

from msgspec.structs import replace

from dnsproxy.doctor.facts.model import Facts, Service
from dnsproxy.doctor.facts.probes import Header
from dnsproxy.doctor.judge.findings import Remedy
from dnsproxy.doctor.judge.header_annotations import HeaderSwitch, Sends, read_switches
from dnsproxy.doctor.judge.installation import DEPLOY, folder, image_of, is_automatic, prints
from dnsproxy.doctor.judge.ip_mode_remedy import judge_with, make_remedy, with_side_effects
from dnsproxy.doctor.judge.provider import Provider, StatusSetting
from dnsproxy.doctor.judge.short_circuit import IP_MODE_SINCE, Answer, DataPlane, parse_version

LOAD_BALANCER_NAME: Final = "lb.example.org"
"""A placeholder for a name that resolves to the load balancer."""
IMAGE: Final = "IMAGE"
"""A placeholder for the image, where none is known."""
STATUS: Final = "kubectl -n switchback exec deploy/operate -- dnsproxy status"
"""What is decided for each class and Gateway, with the evidence, and whether the stanza is loaded."""
UNINSTALL: Final = "dnsproxy uninstall --stop-writers"
"""Also while `dnsproxy operate` runs, which would restore the stanza."""
_WAIT: Final = ("kubectl -n switchback rollout status deployment/operate",)
_PRINT: Final = (
    "kubectl -n switchback create job print --from=cronjob/dnsproxy-print",
    "kubectl -n switchback logs --follow --pod-running-timeout=2m job/print",
)
_ANY_NAME: Final = (
    f" One name that resolves to the load balancer ({LOAD_BALANCER_NAME} here) is enough for all hosts; it need "
    "not be one of them."
)
_SIDE_EFFECTS: Final = (
    " Side effects: `kubectl get service` shows no address any more, and external-dns turns A records into CNAME "
    "records, which are possible neither beside TXT records of the same name nor at the top of a zone."
)


def annotate(service: Service, key: str, value: str) -> str:
    """The command that sets one annotation of a Service."""
    namespace, name = quoted(service.key)
    return f"kubectl -n {namespace} annotate service {name} --overwrite {key}={quote(value)}"


def quoted(key: str) -> tuple[str, str]:
    """Namespace and name of an object, quoted for a shell: a file of facts is not trusted."""
    namespace, _, name = key.partition("/")
    return quote(namespace), quote(name)


def provider_remedies(
    service: Service, provider: Provider, plane: DataPlane, facts: Facts, hostname: str, *, ignored: bool = False
) -> tuple[Remedy, ...]:
    """The remedies at the load balancer, the best first.

    `hostname`: a host behind it, to check with; `ignored`: ipMode is Proxy already, and has no effect.
    """
    first = (Remedy(plane.remedy),) if ignored and plane.remedy else ()
    ip_mode = first if ignored else _with_side_effects(_all_ip_mode(service, provider, plane, facts, hostname), service)
    return (*ip_mode, *_hostname(service, provider))


def _all_ip_mode(
    service: Service, provider: Provider, plane: DataPlane, facts: Facts, hostname: str
) -> Iterator[Remedy]:
    yield from _ip_mode(service, provider, plane, facts)
    judgement = judge_with(facts, service, provider, plane)
    own = make_remedy(service, judgement, facts, hostname)
    if own is not None:
        yield own


def _with_side_effects(remedies: Iterable[Remedy], service: Service) -> tuple[Remedy, ...]:
    """They are the same, whoever writes ipMode, so that the first remedy has them for all."""
    found = tuple(remedies)
    return (*(replace(one, text=with_side_effects(one.text, service)) for one in found[:1]), *found[1:])


def _ip_mode(service: Service, provider: Provider, plane: DataPlane, facts: Facts) -> Iterator[Remedy]:
    server = parse_version(facts.server_version)
    before = []
    if server is not None and server < IP_MODE_SINCE:
        before.append("upgrade Kubernetes to 1.30 or newer")
    elif plane.honours_ip_mode is Answer.NO:
        before.append(plane.remedy)
    first = f"; first {' and '.join(before)}" if before else ""
    unknown = "" if plane.honours_ip_mode is not Answer.UNKNOWN else f"; whether {plane.name} honours ipMode is unknown"
    setting = provider.ip_mode
    if setting is not None and _is_set(setting, service):
        yield _without_effect(setting, service, first + unknown)
    elif setting is not None:
        text = f"{provider.name} can set `ipMode: Proxy`, which ends the short circuit"
        line = annotate(service, setting.key, setting.value)
        yield Remedy(text + _since(setting) + first + unknown, (line,))
    elif provider.ip_mode_auto:
        text = f"upgrade the controller if it is older: {provider.ip_mode_auto}, which ends the short circuit"
        yield Remedy(f"{text}{first}{unknown}")


def _hostname(service: Service, provider: Provider) -> Iterator[Remedy]:
    setting = provider.hostname_of(service)
    if setting is not None and _is_set(setting, service):
        yield _without_effect(setting, service)
    elif setting is not None:
        which = "" if setting.value else _ANY_NAME
        note = f" Note: {setting.note}." if setting.note else ""
        text = f"let {provider.name} put a hostname instead of the ip into the status{_since(setting)}."
        line = annotate(service, setting.key, setting.value or LOAD_BALANCER_NAME)
        yield Remedy(text + which + note + _SIDE_EFFECTS, (line,))


def _is_set(setting: StatusSetting, service: Service) -> bool:
    said = service.annotations.get(setting.key, "")
    return said == setting.value if setting.value else bool(said)


def _without_effect(setting: StatusSetting, service: Service, first: str = "") -> Remedy:
    namespace, name = quoted(service.key)
    text = (
        f"{setting.key} is set, but the status does not show it: see what the controller says{_since(setting)}{first}"
    )
    return Remedy(text, (f"kubectl -n {namespace} describe service {name}",))


def _since(setting: StatusSetting) -> str:
    return f"; needs {setting.since} or newer" if setting.since else ""


def header_on(service: Service, provider: Provider) -> Remedy:
    """How to turn the header on at the load balancer; the provider has a switch."""
    switches = provider.switches_of(service)
    present = [switch for switch in switches if switch.key in service.annotations]
    usable = [switch for switch in (*present, *switches) if switch.on]
    text = "turn it on at the load balancer"
    if not usable:
        # The rest of the value must stay, so no line can be given.
        return Remedy("; ".join([text, *(f"{one.part} in the annotation {one.key}" for one in switches if one.part)]))
    switch = usable[0]
    value = _with_others(switch, service.annotations.get(switch.key, ""))
    after = replace(service, annotations={**service.annotations, switch.key: value})
    hindered = [] if read_switches(switches, after) is Sends.YES else [_hindrance(switches, switch, service)]
    needs = [f"needs {switch.needs}"] if switch.needs else []
    which = [provider.note] if provider.kinds and not provider.kind_of(service) else []
    return Remedy("; ".join([text, *needs, *which, *hindered]), (annotate(service, switch.key, value),))


def _hindrance(switches: tuple[HeaderSwitch, ...], chosen: HeaderSwitch, service: Service) -> str:
    """Why the line alone does not turn the header on."""
    keys = {switch.key_of(port) for switch in switches for port in service.ports} - {chosen.key}
    others = ", ".join(sorted(keys & service.annotations.keys()))
    return f"also correct {others}" if others else "the controller refuses the other settings in this annotation"


def _with_others(switch: HeaderSwitch, old: str) -> str:
    """The value that turns a switch on; of a list of settings, the others stay."""
    name, equals, _ = switch.on.partition("=")
    others = [part.strip() for part in old.split(",") if equals and part.strip()]
    return ",".join([*(part for part in others if part.partition("=")[0] != name), switch.on])


def install_step(facts: Facts, *, condition: str = "") -> Remedy:
    """How to install Switchback with its relay; `condition` comes before the text."""
    if facts.relay is not None and facts.relay.found and facts.dnsproxy is not None and facts.dnsproxy.found:
        if is_automatic(facts.dnsproxy):
            return Remedy("Switchback is installed; see what it decided about this class, and why", (STATUS,))
        return Remedy("Switchback is deployed; let the cluster's DNS ask it", ("dnsproxy install", "dnsproxy status"))
    text = f"{condition}answer the name with a relay that adds the header, which needs no support from the provider"
    printing = ""
    if folder(facts) != DEPLOY:
        printing = "; a Job prints the stanza for the owner of the cluster's DNS, who would undo a written one"
    elif prints(facts):
        printing = "; add the component print, because the owner of the cluster's DNS would undo a written stanza"
    return Remedy(f"{text}{printing}", install_lines(facts))


def install_lines(facts: Facts) -> tuple[str, ...]:
    """The commands that install our parts, and wait or print."""
    return (deploy_line(facts), *(_PRINT if prints(facts) else _WAIT))


def deploy_line(facts: Facts) -> str:
    """The command that deploys our parts."""
    return f"kubectl apply -k {folder(facts)}"


def look_from_inside(facts: Facts) -> Remedy:
    """How to look from a pod at what cannot be dialled from this machine."""
    host = f" {quote(facts.hostname)}" if facts.hostname else ""
    image = image_of(facts)
    hint = "" if image else f". {IMAGE} is an image of Switchback that the nodes can pull or have"
    return Remedy(
        f"look from a pod: it reads these facts from the file, then asks DNS and dials from its place{hint}",
        (
            f"dnsproxy doctor{host} --save facts.json",
            f"kubectl run switchback-doctor --rm -i --restart=Never --image={quote(image or IMAGE)} -- "
            "dnsproxy doctor --from - --probe < facts.json",
        ),
    )


def probe_by_hand(service: Service, hostname: str, header: Header) -> str:
    """One probe with curl from a pod, to check by hand."""
    namespace, _, name = service.key.partition("/")
    address = service.cluster_ips[0] if service.cluster_ips else f"{name}.{namespace}.svc"
    bare = f"[{address}]" if ":" in address else address
    proxy = " --haproxy-protocol" if header is Header.V1 else ""
    return (
        "kubectl run switchback-look --rm -i --restart=Never --image=docker.io/curlimages/curl -- "
        f"-sS -o /dev/null -w '%{{http_code}}\\n' --max-time 5{proxy} --connect-to {quote(f'::{bare}:')} {quote(f'http://{hostname}/')}"
    )
