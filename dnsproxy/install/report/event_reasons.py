"""Why an installer creates an Event, and how its Events are known.

The law: users select by these words, so they stay as they are. Pure.
"""

from __future__ import annotations

from typing import Final

from sidecar.kubernetes.events.event import Reason, Reporter

INSTALLER: Final = Reporter("switchback.dev/dnsproxy-install", action="Install", name_prefix="dnsproxy-install")

INSTALLED: Final = Reason("StanzaInstalled")
REPAIRED: Final = Reason("StanzaRepaired")
MOVED: Final = Reason("StanzaMoved")
UNDONE: Final = Reason("StanzaUndone", warns=True)
REFUSED: Final = Reason("StanzaRefused", warns=True)
NOT_LOADED: Final = Reason("StanzaNotLoaded", warns=True)
FAILED: Final = Reason("InstallFailed", warns=True)
"""The API server did not allow a request, or something could not be read."""
