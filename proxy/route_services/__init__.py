"""Routes from Services: which ports are open, which are not and why. Pure: changes.py and wanted.py."""
