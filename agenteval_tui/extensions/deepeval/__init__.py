"""Test runs of DeepEval."""
