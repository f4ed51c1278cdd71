from __future__ import annotations

import threading
from pathlib import Path

import pytest
import trio

from sidecar.errors import StartError
from sidecar.kubernetes import opening
from sidecar.kubernetes.config import Cluster
from sidecar.kubernetes.opening import find_cluster
from tests.sidecar.kubernetes.test_config import write_kubeconfig


async def test_a_cluster_is_found(tmp_path: Path) -> None:
    found = await find_cluster(kubeconfig=str(write_kubeconfig(tmp_path / "config")), context=None)
    assert isinstance(found, Cluster)


@pytest.mark.parametrize(
    ("flag", "status", "text"),
    [
        pytest.param("--source", 2, "--source: ", id="asked for by a flag"),
        pytest.param(None, 3, "", id="asked for by the command itself"),
    ],
)
async def test_one_that_cannot_be_read_ends_the_program_with_a_line(
    tmp_path: Path, flag: str | None, status: int, text: str
) -> None:
    missing = tmp_path / "config"
    with pytest.raises(StartError) as caught:
        await find_cluster(kubeconfig=str(missing), context=None, flag=flag, status=status)
    assert str(caught.value).startswith(f"{text}{missing} does not exist")
    assert caught.value.status == status


async def test_a_credential_plugin_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    released, entered = threading.Event(), trio.Event()

    def hang(**_: object) -> None:
        trio.from_thread.run_sync(entered.set)
        released.wait(30)

    monkeypatch.setattr(opening, "load_cluster", hang)
    async with trio.open_nursery() as nursery:

        async def find() -> None:
            await find_cluster(kubeconfig=None, context=None)

        nursery.start_soon(find)
        await entered.wait()
        nursery.cancel_scope.cancel()
    released.set()
