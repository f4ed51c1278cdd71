"""`dnsproxy operate`: steers names to a relay without values, and keeps the stanza: facts, decisions, guarded writes.

The law: one direction, observe, decide, write; probe and report stand beside. The route Services are the only state.
"""
