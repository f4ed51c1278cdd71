"""What a running server shows (pages, listing, publication), and how it is asked.

Pure but for publication_route.py, zones_route.py and table_command.py.
"""
