from __future__ import annotations

import os
import platform

import pytest

from tests.bench.whole.machine import (
    describe_python,
    parse_memory_gb,
    parse_model,
    parse_system,
    parse_version,
    read_machine,
)


def test_a_machine_says_what_it_is_and_not_who() -> None:
    machine = read_machine("nothing")
    assert machine.processors == len(os.sched_getaffinity(0))
    assert machine.beside == "nothing"
    assert platform.node() not in repr(machine).replace(machine.model, "")


@pytest.mark.parametrize(
    ("text", "model"),
    [
        pytest.param(
            "processor\t: 0\nmodel name\t: A  B  CPU\nmodel name\t: C\n", "A B CPU", id="the first of several"
        ),
        pytest.param("", platform.machine(), id="none: the architecture"),
    ],
)
def test_the_processor_is_that_of_cpuinfo(text: str, model: str) -> None:
    assert parse_model(text) == model


@pytest.mark.parametrize(
    ("text", "gigabytes"), [("MemTotal:       8000000 kB\n", 8.2), ("MemFree: 1 kB\n", 0.0), ("", 0.0)], ids=str
)
def test_memory_is_in_gigabytes(text: str, gigabytes: float) -> None:
    assert parse_memory_gb(text) == gigabytes


@pytest.mark.parametrize(
    ("text", "system"), [('PRETTY_NAME="Debian 12"\n', "Debian 12"), ("PRETTY_NAME=X\n", "X"), ("", "unknown")], ids=str
)
def test_the_system_is_that_of_os_release(text: str, system: str) -> None:
    assert parse_system(text) == system


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NSD version 4.6.1\nWritten by", "4.6.1"),
        ("HAProxy version 2.6.12-1+deb12u3 2023/01/01", "2.6.12"),
        ("nginx version: nginx/1.22.1\n", "1.22.1"),
        ("wrk debian/4.1.0-3 [epoll]", "4.1.0"),
        ("Kubernetes v1.36.3", "1.36.3"),
        ("go version go1.26.8 linux/amd64", "1.26.8"),
        ("6.1.0-13-custom", "6.1.0"),
        ("no digits", "no digits"),
    ],
)
def test_a_version_is_the_first_number_with_a_point(text: str, version: str) -> None:
    assert parse_version(text) == version


def test_python_says_whether_it_was_optimised() -> None:
    assert platform.python_version() in describe_python()
    assert "optimised" in describe_python()
