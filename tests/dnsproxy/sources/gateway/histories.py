"""Hypothesis strategies: histories of a few objects of the Gateway API."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dnsproxy.sources.annotations import HOSTNAME, IGNORE
from dnsproxy.sources.gateway.kinds import GATEWAY, HTTP_ROUTE, LISTENER_SET, SOURCES, TLS_ROUTE, X_LISTENER_SET
from sidecar.kubernetes.objects import Unreadable
from tests.dnsproxy.sources.gateway.objects import (
    ALL_SETS,
    NEW,
    OLD,
    SELECTED,
    TO_BACKEND,
    TO_HTTPS,
    gateway,
    listener,
    listener_set,
    namespace,
    parent_ref,
    route,
)

Key = tuple[str, str]
"""Kind and NAMESPACE/NAME; the kind of a Namespace is empty."""
Step = tuple[Key, Any]
"""The current object; None if it was deleted."""

# Values that let a name through come first and more than once: otherwise nearly no history would serve one.
HOSTNAMES = ("a.org", "b.a.org", "*.a.org", "*.org")
SCOPES: tuple[Any, ...] = (ALL_SETS, ALL_SETS, ALL_SETS, SELECTED, None, {"namespaces": {"from": "None"}})
PLACES = ("infra/x", "infra/x", "web/x")
GATEWAYS = [parent_ref(place) for place in PLACES]
PARENTS = [*GATEWAYS, parent_ref("web/x", LISTENER_SET), parent_ref("infra/x", X_LISTENER_SET)]

hostnames = st.sampled_from(HOSTNAMES)
places = st.sampled_from(PLACES)
scopes = st.sampled_from(SCOPES)
own_annotations = st.sampled_from(
    [{}, {}, {}, {}, {}, {HOSTNAME: "b.a.org"}, {HOSTNAME: "*.a.org"}, {IGNORE: "true"}, {IGNORE: "?"}]
)
ages = st.sampled_from([OLD, NEW])
rules = st.sampled_from([None, [TO_BACKEND], [TO_HTTPS, TO_BACKEND], [TO_HTTPS], [TO_HTTPS]])
listeners = st.lists(
    st.builds(
        listener,
        st.none() | hostnames,
        st.sampled_from("st"),
        protocol=st.sampled_from(["HTTPS", "HTTPS", "TLS"]),
        allowedRoutes=scopes,
    ),
    min_size=1,
    max_size=3,
)


@st.composite
def parents(draw: st.DrawFn) -> dict[str, Any]:
    section = draw(st.sampled_from(["", "", "s", "t"]))
    ref: dict[str, Any] = draw(st.sampled_from(PARENTS))
    return ref | ({"sectionName": section} if section else {})


@st.composite
def objects(draw: st.DrawFn, kind: str) -> Any:
    place = draw(places)
    match kind:
        case "Gateway":
            spec = {
                "class_name": draw(st.sampled_from(["public", "public", "inner"])),
                "allowedListeners": draw(scopes),
            }
            return gateway(*draw(listeners), place=place, annotations=draw(own_annotations), created=draw(ages), **spec)
        case "ListenerSet" | "XListenerSet":
            parent = draw(st.sampled_from(GATEWAYS))
            return listener_set(*draw(listeners), place=place, parent=parent, annotations=draw(own_annotations))
        case _:
            own, refs = draw(st.lists(hostnames, max_size=2)), draw(st.lists(parents(), min_size=1, max_size=3))
            about = {"annotations": draw(own_annotations), "created": draw(ages), "rules": draw(rules)}
            return route(*own, place=place, parents=refs, **about)


@st.composite
def steps(draw: st.DrawFn, kind: str) -> Step:
    if not kind:
        name = draw(st.sampled_from(["web", "infra"]))
        return (kind, name), draw(st.sampled_from([namespace(name, team="web"), namespace(name), None]))
    one = draw(objects(kind))
    gone = [None, Unreadable(one.metadata, "broken")]
    return (kind, f"{one.metadata.namespace}/{one.metadata.name}"), draw(st.sampled_from([one] * 6 + gone))


any_kind = st.sampled_from(["", *SOURCES])


@st.composite
def _histories(draw: st.DrawFn) -> list[Step]:
    """Objects of most kinds, and changes of them."""
    begin = [draw(steps(kind)) for kind in (GATEWAY, GATEWAY, LISTENER_SET, HTTP_ROUTE, HTTP_ROUTE, TLS_ROUTE, "")]
    return draw(st.permutations([*begin, *draw(st.lists(any_kind.flatmap(steps), max_size=6))]))


histories = _histories()
