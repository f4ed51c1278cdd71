"""The objects that `dnsproxy operate` makes beside its own Deployment, by name and label.

The law: constants only. operate writes them, `dnsproxy uninstall --operate` deletes them; all others are people's.
"""

from __future__ import annotations

from typing import Final

MANAGER: Final = "switchback-operate"
"""A route Service with this value of the label app.kubernetes.io/managed-by is operate's; also its field manager."""
LEASE: Final = "switchback-operate"
"""The Lease that decides which replica probes and writes."""
