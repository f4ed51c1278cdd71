"""Hypothesis strategies: histories of a few objects of Istio."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dnsproxy.sources.annotations import HOSTNAME, IGNORE
from dnsproxy.sources.istio.kinds import ISTIO_GATEWAY, VIRTUAL_SERVICE
from sidecar.kubernetes.objects import Unreadable
from tests.dnsproxy.sources.istio.objects import INGRESS, NEW, OLD, gateway, service

Key = tuple[str, str]
"""Kind and NAMESPACE/NAME."""
Step = tuple[Key, Any]
"""The current object; None if it was deleted."""

# Values that let a name through come more than once: otherwise few histories would serve one.
PLACES = ("infra/x", "infra/x", "web/x")
HOSTNAMES = ("a.org", "b.a.org", "*.a.org", "*.org", "*")
SCOPES = ("", "", "*/", "./", "web/", "infra/")
GATEWAYS = ("infra/x", "infra/x", "x", "web/x", "mesh", "x.infra.svc.cluster.local", "a/b/c")

hostnames = st.sampled_from(HOSTNAMES)
ages = st.sampled_from([OLD, NEW])
own_annotations = st.sampled_from(
    [{}, {}, {}, {}, {}, {HOSTNAME: "b.a.org"}, {HOSTNAME: "*.a.org"}, {IGNORE: "true"}, {IGNORE: "?"}]
)
gateways = st.builds(
    gateway,
    st.builds("{}{}".format, st.sampled_from(SCOPES), hostnames),
    st.builds("{}{}".format, st.sampled_from(SCOPES), hostnames),
    place=st.sampled_from(PLACES),
    selector=st.sampled_from([INGRESS, INGRESS, None, {"istio": "egressgateway"}]),
    annotations=own_annotations,
    created=ages,
)


@st.composite
def services(draw: st.DrawFn) -> Any:
    return service(
        *draw(st.lists(hostnames | st.just("reviews"), max_size=3)),
        place=draw(st.sampled_from(PLACES)),
        gateways=draw(st.none() | st.lists(st.sampled_from(GATEWAYS), min_size=1, max_size=3)),
        export_to=draw(st.sampled_from([None, None, ["*"], ["."], ["web", "infra"], ["~"]])),
        annotations=draw(own_annotations),
        created=draw(ages),
    )


@st.composite
def steps(draw: st.DrawFn, kind: str) -> Step:
    one = draw(gateways if kind == ISTIO_GATEWAY else services())
    gone = [None, Unreadable(one.metadata, "broken")]
    key = f"{one.metadata.namespace}/{one.metadata.name}"
    return (kind, key), draw(st.sampled_from([one] * 6 + gone))


@st.composite
def _histories(draw: st.DrawFn) -> list[Step]:
    """Objects of both kinds, and changes of them."""
    kinds = st.sampled_from([ISTIO_GATEWAY, VIRTUAL_SERVICE])
    begin = [draw(steps(kind)) for kind in (ISTIO_GATEWAY, ISTIO_GATEWAY, VIRTUAL_SERVICE, VIRTUAL_SERVICE)]
    return draw(st.permutations([*begin, *draw(st.lists(kinds.flatmap(steps), max_size=6))]))


histories = _histories()
