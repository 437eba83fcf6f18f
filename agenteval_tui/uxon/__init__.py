"""The config language: parse with positions, diagnose; given a schema, it knows nothing of metrics."""
