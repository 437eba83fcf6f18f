"""How hard a text is to read: the metric `Readability`."""
