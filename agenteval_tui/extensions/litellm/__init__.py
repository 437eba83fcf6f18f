"""Models of all providers that litellm knows: the kind `litellm`."""
