"""Suggest criteria that agree with labelled runs, or with a judge."""
