"""What the programs share; imports none of them.

Pure: answers.py, colour.py, deadlines.py, diffs.py, endpoints.py, errors.py, registries.py and text.py.
"""
