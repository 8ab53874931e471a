"""`python -m fathom` is the command `fathom`."""

from fathom.interfaces.cli.main import main

main()
