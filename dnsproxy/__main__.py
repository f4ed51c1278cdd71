"""`python -m dnsproxy`."""

from dnsproxy.cli import main

main()
