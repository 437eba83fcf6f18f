"""YAML files that people wrote: read with positions, and changed so that all other bytes stay."""
