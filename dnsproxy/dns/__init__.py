"""DNS octets and names; knows no table, socket, claim or cluster. Pure."""
