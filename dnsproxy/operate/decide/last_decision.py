"""The last decision about a subject: the route Service that we wrote for it.

The law: nothing else is remembered. What a person edited there counts, as long as it can be read.
"""

from __future__ import annotations

from dnsproxy.operate.decide.facts import Facts, Route, Subject
from dnsproxy.operate.decide.names import service_name
from sidecar.kubernetes.route_services import parse_subjects


def last_route(subject: Subject, facts: Facts) -> Route | None:
    """The Service that we wrote for a subject."""
    return facts.own_routes.get(service_name(subject))


def is_steered(subject: Subject, route: Route | None) -> bool:
    """Whether a route answers for the names of a subject."""
    return route is not None and str(subject) in subjects_of(route)


def subjects_of(route: Route) -> tuple[str, ...]:
    """The subjects whose names a Service answers; none if its annotation is unreadable."""
    try:
        return parse_subjects(route.subjects) if route.subjects else ()
    except ValueError:
        return ()
