"""dnstap: what a server sees of queries, as Frame Streams for collectors (https://dnstap.info)."""
