"""`python -m counterpoise` is the same as the command."""

from counterpoise.cli import main

main()
