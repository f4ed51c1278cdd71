"""Writing to a stderr that is full, closed or missing."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

import pytest

from sidecar.cli.stderr import Stderr


@pytest.fixture
def pipe() -> Iterator[tuple[int, io.TextIOWrapper]]:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    stream = os.fdopen(write_end, "w")
    yield read_end, stream
    stream.close()
    os.close(read_end)


def test_a_line_arrives(pipe: tuple[int, io.TextIOWrapper]) -> None:
    read_end, stream = pipe
    Stderr(stream).write("one\n")
    assert os.read(read_end, 100) == b"one\n"


def test_a_line_longer_than_a_pipe_takes_at_once_arrives_whole(pipe: tuple[int, io.TextIOWrapper]) -> None:
    read_end, stream = pipe
    text = "x" * 20_000 + "\n"
    Stderr(stream).write(text)
    assert os.read(read_end, 100_000) == text.encode()


def test_a_full_pipe_loses_lines_and_says_how_many_when_there_is_room(pipe: tuple[int, io.TextIOWrapper]) -> None:
    read_end, stream = pipe
    output = Stderr(stream)
    for _ in range(100):
        output.write("x" * 4000 + "\n")
    lost = output.lost
    assert lost > 50
    os.read(read_end, 1_000_000)
    output.write("after\n")
    assert os.read(read_end, 1000) == f"... {lost} log lines were lost here\nafter\n".encode()
    assert output.lost == 0


def test_a_reader_that_is_gone_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as stream:
        output = Stderr(stream)
        output.write("x\n")
        assert output.lost == 1


def test_a_closed_stream_is_no_error(pipe: tuple[int, io.TextIOWrapper]) -> None:
    _, stream = pipe
    output = Stderr(stream)
    stream.close()
    output.write("x\n")
    assert output.lost == 1
    assert not output.isatty()


def test_no_stderr_at_all_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    output = Stderr()
    output.write("x\n")
    assert output.lost == 1
    assert not output.isatty()


def test_a_stream_without_a_descriptor_is_written_to() -> None:
    stream = io.StringIO()
    Stderr(stream).write("x\n")
    assert stream.getvalue() == "x\n"


def test_what_cannot_be_encoded_is_escaped(pipe: tuple[int, io.TextIOWrapper]) -> None:
    read_end, stream = pipe
    Stderr(stream).write("\ud800\n")
    assert os.read(read_end, 100) == b"\\ud800\n"
