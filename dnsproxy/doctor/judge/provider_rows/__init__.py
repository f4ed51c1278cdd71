"""The table of providers, read from the sources of their controllers."""
