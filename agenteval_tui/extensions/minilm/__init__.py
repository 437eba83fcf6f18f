"""Vectors of a small model on this machine: the embedder `minilm`."""
