"""Services, EndpointSlices and nodes in, the mappings of a node out. Pure."""
