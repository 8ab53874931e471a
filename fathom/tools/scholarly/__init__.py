"""Catalogues of scholarly works: one file for each service."""
