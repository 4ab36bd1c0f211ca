"""`python -m ioncast`: the command."""

from ioncast.cli import main

main()
