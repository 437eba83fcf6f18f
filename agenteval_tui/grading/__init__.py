"""From a transcript to a verdict: extraction, metrics, criteria, and why. Pure: no files, no network, no clock."""
