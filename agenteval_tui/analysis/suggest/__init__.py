"""Criteria from examples: the smallest configs that agree with what a person said of runs. No model is asked."""
