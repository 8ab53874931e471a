"""`python -m fathom` is the command `fathom`."""

from fathom.cli.main import main

main()
