"""`python -m wholeip`."""

from wholeip.cli import main

main()
