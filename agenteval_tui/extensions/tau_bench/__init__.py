"""tau-bench and tau2-bench: their results in and out."""
