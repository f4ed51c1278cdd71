"""Where our server spends its time from its start until it is ready: by Python's own profiler.

The law: a profile is taken apart from the measurement, because it takes several times as long.
"""

from __future__ import annotations

import io
import pstats
import re
from typing import Final

from tests.bench.sync.bench import Bench
from tests.kit.launched import ROOT, end_session

_ROWS: Final = 30
_PLACES: Final = re.compile(rf"{re.escape(str(ROOT))}/|\S*/site-packages/|\S*/lib/python3\.\d+/")


def profile(bench: Bench) -> str:
    """The functions with the most time of their own. Raises CannotServe."""
    with bench.folder() as folder:
        data = folder / "profile"
        with bench.server(profile=data) as ours:
            seconds = ours.wait_ready()
            # It writes what it found when it is asked to end.
            ours.process.terminate()
            ours.process.wait()
            end_session(ours.process)
        text = io.StringIO()
        pstats.Stats(str(data), stream=text).sort_stats("tottime").print_stats(_ROWS)
    rows = [_PLACES.sub("", line) for line in text.getvalue().splitlines() if line.strip()]
    return (
        f"profile of {bench.size:,} objects ({bench.contents.name}), {seconds:.1f} s under the profiler\n"
        + "\n".join(rows[2:])
        + "\n"
    )
