"""Moves octets between clients and backends; one trio task for all connections. Pure: counters.py and limits.py."""
