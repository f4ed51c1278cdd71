"""The admin port: what a program shows there, and how it is asked.

Pure: answers.py, hosts.py.
"""
