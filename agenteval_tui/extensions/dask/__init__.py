"""Runs on the workers of a Dask cluster: `agenteval run --executor dask`."""
