"""Large files, read piece by piece."""
