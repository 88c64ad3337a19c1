"""One back end a file: a dictionary from operation to text, and what that language needs around it."""
