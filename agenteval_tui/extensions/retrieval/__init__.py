"""Which documents an agent found, and how well they rank: the metric and the prototype class `Retrieval`."""
