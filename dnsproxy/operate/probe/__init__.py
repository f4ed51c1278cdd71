"""Dials controllers and relays: probes and handshakes, with the doctor's own dialling."""
