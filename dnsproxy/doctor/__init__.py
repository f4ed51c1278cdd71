"""`dnsproxy doctor`: why a hostname fails inside its own cluster, and the line that fixes it.

`collect` gathers facts, `judge` turns them into findings, `printing.py` prints these; `facts` is the value between them
and also a file, so that facts from one machine can be judged on another. Pure: printing.py.
"""
