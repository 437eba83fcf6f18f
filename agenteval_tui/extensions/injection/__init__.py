"""Whether an agent follows instructions that came to it with its material: the metric `Injection`."""
