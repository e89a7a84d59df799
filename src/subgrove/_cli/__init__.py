"""The command `subgrove`: reads a file, asks the library, prints tables and writes files."""
