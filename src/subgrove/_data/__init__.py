"""Tables: containers in, typed columns, replaced columns, containers out."""
