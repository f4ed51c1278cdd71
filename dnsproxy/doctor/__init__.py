"""`dnsproxy doctor`: why a hostname fails inside its own cluster, and the line that mends it.

Facts are collected, judged and told by modules of their own, so that what one machine saw can be judged on another.
"""
