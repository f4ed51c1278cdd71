"""What the facts about a cluster mean for each ingress class and Gateway: what to write and what to probe. Pure."""
