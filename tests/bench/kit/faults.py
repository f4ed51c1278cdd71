"""Why something is not measured. The fault of one server or one program ends its own measurement alone."""

from __future__ import annotations


class CannotServe(Exception):
    """A server, or a server behind it, does not start or does not answer correctly; the message says how."""


class BadReport(Exception):
    """A program that makes load did not report in the form that we read."""
