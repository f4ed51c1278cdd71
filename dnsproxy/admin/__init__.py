"""What a running server shows (pages, listing, publication), and how it is asked.

Pure: explain.py, listing.py and publication.py.
"""
