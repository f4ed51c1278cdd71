"""Whether a query is for a name at or below a zone, and not for the table. Pure."""

from __future__ import annotations

from dnsproxy.answers.decide import Forward, Outcome, Refuse
from dnsproxy.dns import names, wire
from dnsproxy.dns.wire import Fault, Query, Rcode


def query_within(zone: bytes, message: bytes, outcome: Outcome) -> Query | None:
    """The query of a message that the table does not answer, if it is for a name at or below a zone."""
    query = outcome.query if isinstance(outcome, Forward) else _refused_query(message, outcome)
    return query if query is not None and query.name.endswith(zone) and names.is_within_wire(query.name, zone) else None


def _refused_query(message: bytes, outcome: Outcome) -> Query | None:
    """The query of a refusal for its type; None for another one."""
    if not isinstance(outcome, Refuse) or outcome.rcode != Rcode.REFUSED:
        return None
    query = wire.scan_query(message)
    return None if isinstance(query, Fault) or query.klass != wire.CLASS_IN else query
