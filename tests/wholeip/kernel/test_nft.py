"""The failures of running nft; test_nft_contract.py has what works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from tests.kit.programs import program
from wholeip.kernel.nft import Nft
from wholeip.ruleset.nft_errors import Busy, NftFailed, NoAnswer, NoNft, NotPermitted, Refused, UnknownListing
from wholeip.ruleset.ruleset import changes, make_ruleset

SOMETHING = changes(None, make_ruleset([]))


def script(folder: Path, text: str, *, mode: int = 0o755) -> tuple[str, ...]:
    """Stands in for nft."""
    path = folder / "nft"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return (str(path),)


async def test_without_the_program_it_is_named(tmp_path: Path) -> None:
    nft = Nft(command=(str(tmp_path / "nft"),))
    for call in (nft.read_ruleset(), nft.apply(SOMETHING), nft.delete_table()):
        with pytest.raises(NoNft, match=str(tmp_path)):
            await call


async def test_a_program_that_may_not_be_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotPermitted, match="no permission to run"):
        await Nft(command=script(tmp_path, "", mode=0o644)).read_ruleset()


@pytest.mark.peer("nft", "setpriv")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop its capabilities")
async def test_who_may_not_change_the_network_is_told_so() -> None:
    nft = Nft(command=(program("setpriv"), "--reuid=65534", "--clear-groups", program("nft")))
    for call in (nft.read_ruleset(), nft.apply(SOMETHING)):
        with pytest.raises(NotPermitted, match="not permitted"):
            await call


async def test_a_program_that_does_not_end_is_ended(tmp_path: Path) -> None:
    nft = Nft(command=script(tmp_path, f"echo $$ >{tmp_path}/pid\nexec sleep 1000"), timeout_seconds=0.5)
    with pytest.raises(NoAnswer, match="did not exit") as caught:
        await nft.read_ruleset()
    assert caught.value.transient
    if (tmp_path / "pid").exists():  # it may have been ended before it began
        assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


async def test_a_run_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    nft = Nft(command=script(tmp_path, f"echo $$ >{tmp_path}/new && mv {tmp_path}/new {tmp_path}/pid\nexec sleep 1000"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(nft.read_ruleset)
        while not (tmp_path / "pid").exists():
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


async def test_a_program_that_cannot_be_run_now_may_be_later(tmp_path: Path) -> None:
    path = tmp_path / "nft"
    path.write_bytes(b"\x7fELF but no more")
    path.chmod(0o755)
    with pytest.raises(Busy, match="cannot be run"):
        await Nft(command=(str(path),)).read_ruleset()


@pytest.mark.parametrize("text", ["true", "echo words", "echo '{}'", "printf '\\377'"])
async def test_a_listing_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnknownListing):
        await Nft(command=script(tmp_path, text)).read_ruleset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("exit 1", Refused, id="without a word"),
        pytest.param("kill -9 $$", Refused, id="killed"),
        pytest.param("echo 'x:1:1-2: Error: Could not process rule: File exists' >&2; exit 1", Refused, id="refused"),
        pytest.param("printf '\\377' >&2; exit 1", Refused, id="in no language"),
    ],
)
async def test_a_run_that_fails_is_named(tmp_path: Path, text: str, expected: type[NftFailed]) -> None:
    with pytest.raises(expected):
        await Nft(command=script(tmp_path, text)).apply(SOMETHING)


async def test_a_script_is_fed_whole_and_as_it_is(tmp_path: Path) -> None:
    nft = Nft(command=script(tmp_path, f'echo "$@" >{tmp_path}/arguments\ncat >{tmp_path}/script'))
    await nft.check(make_ruleset([]))
    assert (tmp_path / "arguments").read_text() == "--check --file -\n"
    assert (tmp_path / "script").read_text().startswith("add table inet switchback_wholeip\ndelete table inet ")
