"""wholeip: a node agent that gives a pod the whole address of a load balancer, both ways, with nftables."""
