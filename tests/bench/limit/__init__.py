"""Two C programs that make our system calls and do nothing else: what a faster language could reach at most."""
