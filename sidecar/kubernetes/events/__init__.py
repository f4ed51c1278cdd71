"""Kubernetes Events: what a program did to an object, or could not do, where `kubectl describe` shows it.

Pure but for recorder.py.
"""
