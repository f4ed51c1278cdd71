"""Both programs, as the benchmarks run them; build.py through them."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from tests.bench.dns.checking import NO_REPLY, find_fault_at, wait_right
from tests.bench.dns.configs import Site, setup_limit
from tests.bench.dns.workloads import Question, Zone
from tests.bench.kit.cpus import split_cpus
from tests.bench.limit import build
from tests.bench.limit.build import LIMIT, limit_program
from tests.bench.relay.peers import PEERS
from tests.bench.relay.rig import Rig, check_request
from tests.bench.relay.workloads import WORKLOADS
from tests.kit.launched import launched
from tests.kit.polling import poll_until
from tests.kit.ports import free_port

HOSTS = tuple((f"app-{number}.apps.example.org", f"192.0.2.{number}") for number in range(1, 200))
CPUS = os.sched_getaffinity(0)


@pytest.mark.peer("cc")
@pytest.mark.parametrize("edns", [pytest.param(False, id="plain"), pytest.param(True, id="edns")])
def test_it_answers_each_name_of_its_table_and_no_other(tmp_path: Path, edns: bool) -> None:
    program = limit_program("answers")
    assert program is not None
    site = Site(program, tmp_path, free_port(), Zone("some", HOSTS))
    setup = setup_limit(site)
    for name, content in setup.files.items():
        (tmp_path / name).write_text(content)
    with launched(setup.command, log=tmp_path / "log", cpus=CPUS, folder=tmp_path) as process:
        for name, address in HOSTS[:20]:
            wait_right(process, partial(find_fault_at, site.port, Question(name, address), edns=edns))
        assert find_fault_at(site.port, Question("other.example.org", "192.0.2.1"), edns=edns) == NO_REPLY


@pytest.mark.peer("cc", "nginx")
def test_it_relays_with_the_header_and_closes_what_it_opened() -> None:
    (peer,) = (peer for peer in PEERS if peer.label == LIMIT)
    (workload,) = (workload for workload in WORKLOADS if workload.name == "new")
    with Rig(cpus=split_cpus(CPUS)) as rig:
        server = rig.relay(peer, workload)
        opened = Path(f"/proc/{server.process.pid}/fd")
        for _ in range(20):
            check_request(server.port)
        # Standard input and two outputs, the poller and the listener.
        poll_until(lambda: len(list(opened.iterdir())) == 5, "it keeps descriptors of ended connections", seconds=10)


def test_without_a_compiler_there_is_no_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "_BUILT", tmp_path)
    monkeypatch.setattr(build, "find_program", lambda _: None)
    assert limit_program("answers") is None


@pytest.mark.peer("cc")
def test_a_source_that_does_not_compile_leaves_no_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "_BUILT", tmp_path / "built")
    monkeypatch.setattr(build, "_FOLDER", tmp_path)
    (tmp_path / "answers.c").write_text("int main(void) { return nothing; }\n")
    assert limit_program("answers") is None
    (tmp_path / "answers.c").write_text("int main(void) { return 0; }\n")
    assert limit_program("answers") is not None
