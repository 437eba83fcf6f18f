"""Receive OpenTelemetry traces, and store each as a run, live."""
