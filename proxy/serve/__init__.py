"""The relay as a program: one process or several workers, its lifetime and its end. Pure: worker_reports.py."""
