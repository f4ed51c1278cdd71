"""Removing the table from a kernel."""

from __future__ import annotations

import pytest
import trio

from sidecar.values.errors import StartError
from tests.kit.wholeip_kernel import FakeKernel
from tests.kit.wholeip_objects import ip
from wholeip.mappings.mapping import Mapping
from wholeip.ruleset.nft_errors import NoNft, NotPermitted
from wholeip.ruleset.ruleset import make_ruleset
from wholeip.uninstall_command import uninstall

TABLE = make_ruleset([Mapping("a/b", ip("192.0.2.1"), ip("10.0.0.1"), None, icmp=True, egress=True)])


async def test_it_is_taken_out_once_and_twice_is_as_good(
    capsys: pytest.CaptureFixture[str],
    autojump_clock: object,  # noqa: ARG001
) -> None:
    kernel = FakeKernel(TABLE)
    assert await uninstall(kernel, dry_run=False) == 0
    assert kernel.ruleset is None
    assert await uninstall(kernel, dry_run=False) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Removed the table inet switchback_wholeip with 1 addresses.",
        "There is no table inet switchback_wholeip: nothing to remove.",
    ]


async def test_a_table_that_an_agent_puts_back_is_a_no(
    capsys: pytest.CaptureFixture[str],
    nursery: trio.Nursery,
    autojump_clock: object,  # noqa: ARG001
) -> None:
    kernel = FakeKernel(TABLE)

    async def restore() -> None:
        await trio.sleep(1)
        kernel.change(TABLE)

    nursery.start_soon(restore)
    with pytest.raises(StartError, match=r"is there again: end `wholeip run` on this node") as caught:
        await uninstall(kernel, dry_run=False)
    assert caught.value.status == 1
    assert capsys.readouterr().out == ""


async def test_a_dry_run_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = FakeKernel(TABLE)
    assert await uninstall(kernel, dry_run=True) == 0
    assert kernel.ruleset is TABLE
    assert capsys.readouterr().out == "Would remove the table inet switchback_wholeip with 1 addresses.\n"


@pytest.mark.parametrize("error", [NotPermitted("Operation not permitted"), NoNft("the program nft is missing")])
async def test_a_kernel_that_is_not_ours_to_change_is_status_3(error: NotPermitted) -> None:
    with pytest.raises(StartError, match=str(error)) as caught:
        await uninstall(FakeKernel(TABLE, failures=[error]), dry_run=False)
    assert caught.value.status == 3
