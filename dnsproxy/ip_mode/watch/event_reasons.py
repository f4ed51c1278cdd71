"""Why the watch creates an Event, and how its Events are known.

The law: users select by these words, so they stay as they are. Pure.
"""

from __future__ import annotations

from typing import Final

from sidecar.kubernetes.events.event import Reason, Reporter

WATCHER: Final = Reporter("switchback.dev/dnsproxy-ip-mode", action="SetIpMode", name_prefix="dnsproxy-ip-mode")

SET: Final = Reason("IpModeSet")
UNDONE: Final = Reason("IpModeUndone", warns=True)
REFUSED: Final = Reason("IpModeRefused", warns=True)
"""The Service's load balancer does not end connections, or is not known to."""
NOT_KEPT: Final = Reason("IpModeNotKept", warns=True)
"""The API server took the write and dropped the field."""
FAILED: Final = Reason("IpModeFailed", warns=True)
