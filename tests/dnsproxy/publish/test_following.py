"""Following a table: failures of the source and of the target, and the time of the next read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import structlog.testing
import trio
import trio.testing

from dnsproxy.admin.publication import Publication
from dnsproxy.publish.following import PublishError, follow, publish_once
from dnsproxy.publish.publisher_status import PublishStatus
from dnsproxy.publish.selection import describe_loss
from dnsproxy.publish.settings import Pace
from sidecar.values.errors import StartError
from tests.kit.publications import ScriptedSource, publication

ONE = publication("app.example.org 192.0.2.10")
TWO = publication("b.example.org 192.0.2.11")


@dataclass
class ScriptedTarget:
    """Takes what it is given, notes when; the script has a text for each time: why it fails, or `hold`."""

    script: Sequence[str] = ("",)
    taken: list[tuple[float, Publication, bool]] = field(default_factory=list)

    async def publish(self, publication: Publication, *, confirmed: bool) -> str:
        said = self.script[min(len(self.taken), len(self.script) - 1)]
        self.taken.append((trio.current_time(), publication, confirmed))
        if said == "hold":
            return "" if confirmed else describe_loss(before=3_000, after=1)
        if said:
            raise PublishError(said)
        return ""

    @property
    def times(self) -> list[float]:
        return [time for time, *_ in self.taken]


def status() -> PublishStatus:
    return PublishStatus("the source", "the target")


async def followed(
    source: ScriptedSource, target: ScriptedTarget, *, seconds: float, noted: PublishStatus, interval: float = 10
) -> list[str]:
    """What was logged in that time."""
    with structlog.testing.capture_logs() as logs, trio.move_on_after(seconds):
        await follow(source, target, pace=Pace(interval=interval), status=noted)
    return [f"{entry['log_level']} {entry['event']}" for entry in logs]


async def test_a_table_is_published_at_once_and_looked_at_in_every_interval(autojump_clock: trio.abc.Clock) -> None:  # noqa: ARG001
    source, target, noted = ScriptedSource([ONE, ONE, TWO]), ScriptedTarget(), status()
    start = trio.current_time()
    await followed(source, target, seconds=25, noted=noted)
    assert [taken for _, taken, _ in target.taken[:3]] == [ONE, ONE, TWO]
    assert target.times[0] == start
    assert all(9 <= later - earlier <= 11 for earlier, later in zip(target.times, target.times[1:], strict=False))
    assert noted.reads == {"changed": 2, "unchanged": 1, "failed": 0}
    assert noted.why_not_ready() == ""


async def test_a_table_that_cannot_be_read_takes_nothing_away_and_is_told_of_once(
    autojump_clock: trio.abc.Clock,  # noqa: ARG001
) -> None:
    source, target, noted = ScriptedSource([ONE, "away", "away", "still away", ONE]), ScriptedTarget(), status()
    logs = await followed(source, target, seconds=45, noted=noted)
    assert {taken for _, taken, _ in target.taken} == {ONE}
    assert logs == ["warning cannot read the table; published names stay", "info the table can be read again"]
    assert noted.reads["failed"] == 3
    assert noted.source_trouble == ""


async def test_a_source_that_is_away_leaves_a_publisher_ready_that_has_published(
    autojump_clock: trio.abc.Clock,  # noqa: ARG001
) -> None:
    noted = status()
    await followed(ScriptedSource([ONE, "away"]), ScriptedTarget(), seconds=15, noted=noted)
    assert (noted.source_trouble, noted.why_not_ready()) == ("away", "")


async def test_a_first_table_is_waited_for_with_growing_pauses_up_to_the_interval(
    autojump_clock: trio.abc.Clock,  # noqa: ARG001
) -> None:
    source, noted = ScriptedSource(["away"]), status()
    await followed(source, ScriptedTarget(), seconds=42, noted=noted, interval=4)
    # After 1, 2, 4, 4 ... seconds, each up to a half more or less.
    assert 42 / 6 <= source.reads <= 42 / 2 + 4
    assert noted.why_not_ready() == "away"


async def test_what_is_held_back_is_looked_at_a_second_time_soon(autojump_clock: trio.abc.Clock) -> None:  # noqa: ARG001
    target, noted = ScriptedTarget(["", "hold", "hold"]), status()
    logs = await followed(ScriptedSource([ONE, TWO]), target, seconds=15, noted=noted)
    assert [confirmed for *_, confirmed in target.taken] == [False, False, True]
    assert target.times[2] - target.times[1] < 3
    assert logs == ["warning held back"]
    assert noted.held_back == ""


async def test_a_doubt_that_a_second_look_dispels_is_no_confirmation_for_the_next(
    autojump_clock: trio.abc.Clock,  # noqa: ARG001
) -> None:
    target = ScriptedTarget(["", "hold", "", "hold", "hold"])
    await followed(ScriptedSource([ONE]), target, seconds=30, noted=status())
    assert [confirmed for *_, confirmed in target.taken[:5]] == [False, False, True, False, True]


async def test_what_is_held_back_for_good_is_looked_at_no_more_often_than_else(
    autojump_clock: trio.abc.Clock,  # noqa: ARG001
) -> None:
    class Stubborn(ScriptedTarget):
        async def publish(self, publication: Publication, *, confirmed: bool) -> str:
            await super().publish(publication, confirmed=confirmed)
            return "not without --allow-empty"

    target, noted = Stubborn(), status()
    logs = await followed(ScriptedSource([ONE]), target, seconds=40, noted=noted)
    assert len(target.taken) <= 6
    assert logs == ["warning held back"]
    assert noted.why_not_ready() == "not without --allow-empty"


async def test_a_failure_between_two_looks_does_not_confirm(autojump_clock: trio.abc.Clock) -> None:  # noqa: ARG001
    """The second read is one that saw a table."""
    target = ScriptedTarget(["", "hold"])
    await followed(ScriptedSource([ONE, TWO, "away", TWO]), target, seconds=35, noted=status())
    assert [confirmed for *_, confirmed in target.taken[:3]] == [False, False, True]


async def test_a_target_that_fails_is_tried_again_and_each_trouble_is_told_once(
    autojump_clock: trio.abc.Clock,  # noqa: ARG001
) -> None:
    noted = status()
    target = ScriptedTarget(["full", "full", "refused", ""])
    logs = await followed(ScriptedSource([ONE]), target, seconds=35, noted=noted)
    assert logs == ["warning cannot publish", "warning cannot publish", "info published again"]
    assert noted.writes["failed"] == 3
    assert noted.why_not_ready() == ""


@pytest.mark.parametrize(
    ("script", "target", "code", "reason"),
    [
        pytest.param(["away"], [""], 3, "away", id="no table"),
        pytest.param([ONE], ["refused"], 1, "refused", id="refused"),
        pytest.param([ONE, "away"], ["hold"], 3, "away", id="no second read"),
        pytest.param([ONE], ["hold", "refused"], 1, "refused", id="refused at the second read"),
    ],
)
async def test_once_says_why_it_did_not_publish(
    autojump_clock: trio.abc.Clock,  # noqa: ARG001
    script: list[Publication | str],
    target: list[str],
    code: int,
    reason: str,
) -> None:
    with pytest.raises(StartError, match=reason) as caught:
        await publish_once(ScriptedSource(script), ScriptedTarget(target), pace=Pace(), status=status())
    assert caught.value.status == code


async def test_once_a_second_look_does_not_confirm_a_loss(autojump_clock: trio.abc.Clock) -> None:  # noqa: ARG001
    """The same static file shows the same loss."""
    target = ScriptedTarget(["hold"])
    with pytest.raises(StartError, match=r"a second read shows the same, and --allow-loss publishes it") as caught:
        await publish_once(ScriptedSource([ONE]), target, pace=Pace(), status=status())
    assert caught.value.status == 1
    assert [confirmed for *_, confirmed in target.taken] == [False, False]


async def test_once_a_loss_that_the_second_look_dispels_is_none(autojump_clock: trio.abc.Clock) -> None:  # noqa: ARG001
    target = ScriptedTarget(["hold", ""])
    await publish_once(ScriptedSource([ONE, TWO]), target, pace=Pace(), status=status())
    assert [taken for _, taken, _ in target.taken] == [ONE, TWO]


async def test_once_an_operator_may_confirm_a_loss(autojump_clock: trio.abc.Clock) -> None:  # noqa: ARG001
    target = ScriptedTarget(["hold"])
    await publish_once(ScriptedSource([ONE]), target, pace=Pace(), status=status(), allow_loss=True)
    assert [confirmed for *_, confirmed in target.taken] == [True]
