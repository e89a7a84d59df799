"""`python -m subgrove._cli` is the command `subgrove`."""

from subgrove_command import main

if __name__ == "__main__":
    main()
