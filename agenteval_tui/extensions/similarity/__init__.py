"""How near two texts are in what they mean, by an embedder: the metric `Similarity`."""
