"""wholeip: a node agent that gives a pod the whole address of a load balancer, in and out, with nftables."""
