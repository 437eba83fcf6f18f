"""How alike two texts are, by their letters or words: the metric `Lexical`."""
