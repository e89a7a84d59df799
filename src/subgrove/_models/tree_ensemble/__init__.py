"""Tree ensembles: fitted boosters and forests read into one node layout."""
