"""The controller that steers names to a relay without values: facts, decisions, guarded writes.

The law: one direction, facts, decisions, plan, and writes that are guarded by the resourceVersion. The route Services
are the only state. What collects facts and writes is not here yet.
"""
