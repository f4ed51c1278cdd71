"""What a running server shows (pages, listing, publication), and how it is asked.

Pure but for counted_route.py, pod_documents.py, pod_poller.py, publication_route.py, rewrites_route.py,
subjects_route.py, table_command.py, table_document.py, tap_route.py and zones_route.py.
"""
