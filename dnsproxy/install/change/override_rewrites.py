"""The method override-rewrites: `rewrite` lines in a key of Switchback's own, in an import inside the block of `.`.

The law: as for the method import, the install owns the key from its first marker to its second. A name that another
line of the block takes, that another forward or block serves, or whose Service the cluster's DNS does not know, keeps
its own answer. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from dnsproxy.cluster_dns.found import FoundCorefile
from dnsproxy.cluster_dns.method_choice import Choice, Method
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.routes import find_routes
from dnsproxy.corefile.model import CorefileError, Scope, listed
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.rewrite_lines import MOST, Rewrite, format_rewrites, parse_rewrites
from dnsproxy.corefile.zones import ROOT
from dnsproxy.hostnames.registrable import zone_of
from dnsproxy.install.change.config_map import Edits, Wanted, data_of
from dnsproxy.install.change.importing import (
    change_own_key,
    check_own_key,
    check_own_text,
    find_surroundings,
    format_own_file,
    path_of_key,
)
from dnsproxy.install.change.rewrite_choice import ADVICE, ChosenRewrites, LiveRewrites, choose_rewrites
from dnsproxy.install.change.rewrite_rules import Rules


def plan_override_rewrites(corefile: FoundCorefile, choice: Choice, wanted: Wanted) -> Edits:
    """The edits that write the key for the import of a choice. Raises ChangeRefused."""
    target, hook, live = choice.target, choice.hook, wanted.rewrites
    if target is None or hook is None or live is None:
        raise ValueError("the choice has no import, or nothing was read of the names")
    old = data_of(target.source).get(target.key)
    check_own_key(old, target)
    if live.doubt and not live.names and old is None:
        reason = f"no dnsproxy gave the names of its table: {live.doubt}"
        raise ChangeRefused(reason, "--from names an admin port that answers here")
    rules = Rules(find_routes(corefile, target, path_of_key(hook, target)), choice.domain, live.absent)
    zones = tuple(zone for zone in wanted.zones if zone != ROOT)
    chosen = choose_rewrites(live, standing_rewrites(old), refuse=rules.refuse, zones=zones, foreign=rules.foreign)
    around = None if old is None else find_surroundings(old, target)
    change = change_own_key(target, old, format_own_file(format_rewrites(chosen.rewrites, choice.domain), around))
    check_own_text(change.data[0].new or "", Scope.ROOT_PLUGINS, target)
    notes = [*_notes(chosen, live), *rules.notes(), *choice.what_else]
    return Edits(Method.OVERRIDE_REWRITES, (change,), (), tuple(dict.fromkeys(notes)), rewrites=chosen)


def standing_rewrites(text: str | None) -> tuple[Rewrite, ...]:
    """What the lines of our key say; nothing if there are none, or they were edited by hand."""
    try:
        return parse_rewrites(parse_corefile(text or "", Scope.ROOT_PLUGINS)).rewrites
    except CorefileError:
        return ()


def _notes(chosen: ChosenRewrites, live: LiveRewrites) -> Iterator[str]:
    if not chosen.names:
        yield "no name of dnsproxy's table has a Service with a ready endpoint: nothing is rewritten yet"
    if live.plain:
        yield f"{live.plain} names of dnsproxy's table have plain addresses and no Service: they are answered as before"
    if chosen.kept:
        yield f"kept, because names may be missing ({live.doubt}): {listed(chosen.kept)}"
    if beyond := len(chosen.beyond) + live.left_out:
        named = f", such as {listed(chosen.beyond)}" if chosen.beyond else ""
        yield f"{beyond} names are left out beyond {MOST} lines{named}: {ADVICE}"
    by_reason: dict[str, list[str]] = {}
    for hostname, why in chosen.refused:
        by_reason.setdefault(why, []).append(hostname)
    yield from (f"left out: {listed(hostnames)}: {why}" for why, hostnames in by_reason.items())
    if apexes := [name for name in chosen.names if zone_of(name) == name]:
        yield f"the cluster's DNS has no MX, TXT or other records any more of {listed(apexes)}"
