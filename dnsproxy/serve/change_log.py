"""The log of the table's changes: one line for each swap that changed something.

The law: ten names at most, however many a swap has; `/changes` and the page have the last 500.
"""

from __future__ import annotations

import structlog

from dnsproxy.hostnames.table_changes import SwapChanges

log = structlog.get_logger("dnsproxy.table")


def log_changes(swap: SwapChanges) -> None:
    """Log what a swap changed, with the objects that the names come from."""
    log.info(
        "table changed",
        **{str(what): count for what, count in swap.counts.items()},
        names=[str(change) for change in swap.first],
        more=swap.more,
    )
