"""From suites and options to the runs of an execution."""
