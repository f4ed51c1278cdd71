"""A sample of a running server: the kernel's figures of the process (proc(5)), and the server's own metrics."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.kit.scraping import scrape
from tests.soak.figures import COUNTERS, FIGURES, Sample

_KIB_PER_MIB: Final = 1024


class Gone(Exception):
    """The server does not run any more, or its admin port does not answer."""


def take_sample(process: int, admin: str) -> tuple[Sample, Mapping[str, float]]:
    """A sample, including the machine's load average, and all metrics of the admin port. Raises Gone."""
    try:
        metrics = scrape(admin)
        sample = {**read_process(Path("/proc") / str(process)), **pick_metrics(metrics)}
        return {**sample, "load": os.getloadavg()[0]}, metrics
    except OSError as error:
        raise Gone(str(error)) from error


def read_process(folder: Path) -> Sample:
    """The kernel's figures, from a folder of /proc. Raises OSError."""
    return {**parse_status((folder / "status").read_text()), "descriptors": float(len(os.listdir(folder / "fd")))}


def parse_status(text: str) -> Sample:
    """Memory and threads from /proc/PID/status. Raises OSError for a zombie process."""
    fields = dict(re.findall(r"^(\w+):\s+(\d+)", text, re.MULTILINE))
    if "VmRSS" not in fields:
        raise ProcessLookupError("the process has no memory figures: it is a zombie")
    return {"memory": int(fields["VmRSS"]) / _KIB_PER_MIB, "threads": float(fields["Threads"])}


def pick_metrics(metrics: Mapping[str, float]) -> Sample:
    """The figures and counters that a server exports."""
    wanted = {**{figure.name: figure.metric for figure in FIGURES if figure.metric is not None}, **COUNTERS}
    return {name: metrics[metric] for name, metric in wanted.items() if metric in metrics}
