"""Runs the relay as a program: one process or several workers, from start to drain.

Pure: silence.py and worker_reports.py.
"""
