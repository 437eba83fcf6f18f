"""Blame: the step where a run was lost, first from what is stored, then by sampling."""
