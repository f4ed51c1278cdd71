"""Moves octets between clients and backends; one trio task for all connections."""
