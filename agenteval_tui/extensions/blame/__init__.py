"""Find the step where a run went wrong, and whose fault it is."""
