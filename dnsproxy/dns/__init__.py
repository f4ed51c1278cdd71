"""Octets and names; knows no table, socket, claim or cluster. Pure."""
