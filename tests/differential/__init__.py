"""Differential tests: the hosts that a real controller serves, beside those that Switchback claims.

Generated sets of objects, each in a zone and namespaces of its own, are stored in one real API server. The controller's
own API says which names it serves; a difference that no row of a test's table explains fails the test.
"""
