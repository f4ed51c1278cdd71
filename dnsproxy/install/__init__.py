"""The installer: one static `forward` stanza into what serves the cluster's DNS, and out again without a trace.

Pure: outcome.py, printing.py, printing_values.py, printing_yaml.py, status.py and status_report.py.
"""
