"""Measures on labelled data how often answers are right. The repository doesn't contain the data; these modules make
the published tables."""
