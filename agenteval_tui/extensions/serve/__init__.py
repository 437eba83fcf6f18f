"""Serve the app to a browser, by default on this machine only."""
