"""Moves octets between clients and backends; one trio task for all connections. Pure: clients.py and counters.py."""
