"""Embedders: they turn a text into a vector, so that meanings can be compared."""
