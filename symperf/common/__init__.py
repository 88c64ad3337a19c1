"""What every room uses: the error that bad input causes, optional packages, the cache of artefacts, fingerprints.

Imports no other room.
"""
