"""Traces of MLflow."""
