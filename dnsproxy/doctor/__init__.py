"""`dnsproxy doctor`: why a hostname fails inside its own cluster, and the line that mends it.

Facts are collected, judged and told by modules of their own, so that what one machine saw can be judged on another.

Pure: catalogue.py, diagnose.py, facts.py, facts_file.py, findings.py, judge_dns.py, judge_relay.py, judge_site.py,
path_report.py, paths.py, printing.py, providers.py, proxy_header.py, read_dns.py, remedies.py, short_circuit.py,
sites.py, structs.py, switches.py, targets.py and versions.py.
"""
