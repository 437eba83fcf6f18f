"""The Inspect screen: why a run failed."""
