"""Files that share a server are one unit of work; each other file is one of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.one_worker import shared_server

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("from tests.kit.doctor_stage.stage import PEERS, Stage, stage\n", "doctor_stage"),
        ("from tests.kit.operate_stage.stage import PEERS, stage\n", "operate_stage"),
        ("def test_one(apiserver: ApiServer) -> None:\n", "apiserver"),
        ("def test_one(bare: ApiServer) -> None:\n", "deploy"),
        ("def test_one(folder: Path, applied: ApiServer) -> None:\n", "deploy"),
        ("def test_one(image_dist: Path) -> None:\n", "image_dist"),
        ("from tests.kit.doctor_stage.servers import Server\nfrom tests.kit.apiserver import ApiServer\n", None),
        ("with running_apiserver(folder) as server:\n", None),
    ],
)
def test_a_file_says_by_its_fixtures_which_server_it_shares(text: str, server: str | None, tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(text, encoding="utf-8")
    assert shared_server(file) == server


@pytest.mark.parametrize("server", ["doctor_stage", "operate_stage", "apiserver", "deploy", "image_dist"])
def test_several_files_share_each_of_them(server: str) -> None:
    files = [one for one in (ROOT / "tests").rglob("test_*.py") if one != Path(__file__)]
    assert sum(shared_server(one) == server for one in files) > 1
