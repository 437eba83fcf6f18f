"""Reports and datasets of pydantic-evals."""
