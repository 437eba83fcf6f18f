"""Trajectories of ATIF (Harbor), in and out."""
