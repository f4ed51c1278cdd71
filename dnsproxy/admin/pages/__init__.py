"""The pages of a DNS server for people, on its admin port. Pure."""
