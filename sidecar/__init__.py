"""What the programs share; imports none of them.

Pure: answers.py, colour.py, deadlines.py, diffs.py, endpoints.py, errors.py,
host_port.py and text.py.
"""
