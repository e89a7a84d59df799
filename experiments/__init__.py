"""The paper's tables and figures, a file each: run, table, figure. `python -m experiments --help` lists them."""
