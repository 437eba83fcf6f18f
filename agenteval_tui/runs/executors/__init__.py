"""Where the runs of an execution happen, when it is not in the execution's own process."""
