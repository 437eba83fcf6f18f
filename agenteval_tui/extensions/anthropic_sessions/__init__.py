"""Sessions of Anthropic's managed agents."""
