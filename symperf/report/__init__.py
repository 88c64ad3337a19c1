"""What a person reads: tables in the terminal, and the JSON of the public contract."""
