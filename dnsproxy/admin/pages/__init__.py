"""The pages of a DNS server for users, on its admin port. Pure."""
