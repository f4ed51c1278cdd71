"""Which of what is due starts now."""

from __future__ import annotations

from dnsproxy.operate.decide.facts import Place, Subject
from dnsproxy.operate.decide.handshaking import LastHandshake, RelayHandshake
from dnsproxy.operate.decide.probing import BalancerProbe, EndpointProbe, LastProbe
from dnsproxy.operate.decide.turns import OF_ONE, TOGETHER, choose_balancers, choose_handshakes, choose_probes
from sidecar.values.endpoints import Endpoint


def place(service: str, number: int) -> Place:
    return service, number, Endpoint("10.0.0.1", number)


def probes(service: str, count: int, *, in_turn: bool = False) -> list[EndpointProbe]:
    return [EndpointProbe(place(service, number), False, ("app.example.org",), in_turn) for number in range(count)]


def chosen(
    due: list[EndpointProbe], last: dict[Place, LastProbe] | None = None, under_way: dict[Place, bool] | None = None
) -> list[str]:
    found = choose_probes(due, last or {}, under_way or {})
    return [f"{one.place[0]}:{one.place[1]}" for one in found]


def test_one_service_gets_a_few_and_the_others_theirs_beside_it() -> None:
    found = chosen([*probes("a/many", 100), *probes("b/two", 2)])
    assert found == ["a/many:0", "b/two:0", "a/many:1", "b/two:1", "a/many:2", "a/many:3"]


def test_nothing_starts_a_second_time_while_it_is_under_way() -> None:
    assert chosen(probes("a/a", 2), under_way={place("a/a", 0): False}) == ["a/a:1"]
    assert chosen(probes("a/a", 1, in_turn=True), under_way={place("a/a", 0): False}) == []


def test_probes_in_turn_leave_half_of_the_room_to_new_endpoints() -> None:
    silent = dict.fromkeys((place("a/a", 100 + number) for number in range(OF_ONE // 2)), True)
    assert chosen(probes("a/a", 5, in_turn=True), under_way=silent) == []
    assert len(chosen(probes("a/a", 5), under_way=silent)) == OF_ONE - len(silent)
    everywhere = {place(f"t{number}/x", 1): True for number in range(TOGETHER // 2)}
    assert chosen(probes("a/a", 5, in_turn=True), under_way=everywhere) == []
    assert len(chosen(probes("a/a", 5), under_way=everywhere)) == OF_ONE


def test_no_more_than_the_limit_are_under_way_together() -> None:
    crowd = [one for number in range(TOGETHER) for one in probes(f"t{number:03}/x", 3)]
    assert len(chosen(crowd)) == TOGETHER
    assert chosen(crowd, under_way={place(f"u{number}/x", 1): False for number in range(TOGETHER)}) == []


def test_new_endpoints_come_first_then_the_service_and_the_port_that_have_waited_longest() -> None:
    last = {place("a/a", 0): LastProbe(50), place("a/a", 1): LastProbe(10), place("b/b", 0): LastProbe(20)}
    due = [*probes("a/a", 2, in_turn=True), *probes("b/b", 1, in_turn=True), *probes("c/c", 1)]
    assert chosen(due, last) == ["c/c:0", "b/b:0", "a/a:1", "a/a:0"]


def test_a_service_with_probes_under_way_comes_after_one_without() -> None:
    room_for_one = {place(f"u{number}/x", 1): False for number in range(TOGETHER - 2)}
    assert chosen([*probes("a/a", 2), *probes("b/b", 1)], under_way={**room_for_one, place("a/a", 9): False}) == [
        "b/b:0"
    ]


def test_each_load_balancer_is_dialled_once_at_a_time_and_the_oldest_first() -> None:
    due = [BalancerProbe(f"t/{name}", (), ("app.example.org",)) for name in "abc"]
    assert [one.service for one in choose_balancers(due, {"t/a": 1.0}, {"t/b"})] == ["t/c", "t/a"]
    assert choose_balancers(due, {}, {f"u/{number}" for number in range(TOGETHER)}) == ()


def test_each_backend_gets_one_handshake_at_a_time_and_first_ones_come_first() -> None:
    one, two, three = (Subject(name) for name in ("one", "two", "three"))
    due = [
        RelayHandshake(subject, to, (), ("app.example.org",))
        for subject, to in ((one, "a/a"), (two, "a/a"), (three, "b/b"))
    ]
    last = {one: LastHandshake("a/a", 5.0)}
    assert [each.subject for each in choose_handshakes(due, last, {})] == [two, three]
    assert [each.subject for each in choose_handshakes(due, last, {two: "a/a"})] == [three]
    # The one before was with another backend.
    assert [each.subject for each in choose_handshakes(due, last, {three: "c/c"})] == [two]
    assert choose_handshakes(due, last, {Subject(f"u{number}"): f"u/{number}" for number in range(TOGETHER)}) == ()
