"""What the facts about a cluster mean for each ingress class and Gateway, and what has to be written. Pure."""
