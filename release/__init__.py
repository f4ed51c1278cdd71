"""Builds a release from a clean tag into a folder, and says how to push it; pushes nothing.

Pure: artefacts.py, changelog.py, checksums.py, image_name.py, judge.py, notes.py, pinned.py, plan.py, pushes.py and
values.py.
"""
