"""Experiments and logs of Braintrust."""
