"""`python -m subgrove._cli` is the command `subgrove`."""

from subgrove._cli.app import main

if __name__ == "__main__":
    main()
