"""`python -m fathom` is the command `fathom`."""

try:
    from fathom.interfaces.cli.main import main
except KeyboardInterrupt:
    raise SystemExit(130) from None

main()
