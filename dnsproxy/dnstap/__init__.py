"""dnstap: what a server sees of queries, as Frame Streams for collectors (https://dnstap.info).

Pure: frames.py, messages.py, numbers.py and settings.py.
"""
