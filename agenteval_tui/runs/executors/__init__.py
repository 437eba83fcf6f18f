"""Where the runs of an execution happen, when it is not in the execution's own process."""

DASK = "dask"
LOCAL = "local"
ADDRESS = "DASK_SCHEDULER_ADDRESS"
"""The environment variable that says where the cluster's scheduler is."""
