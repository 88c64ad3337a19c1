"""What every room uses: the error that bad input causes, optional packages, the cache of artefacts, tables of text.

Imports no other room.
"""
