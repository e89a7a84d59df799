"""The command `subgrove`: read a file, call the library, print tables and write files."""
