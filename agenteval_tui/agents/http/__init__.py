"""The kind `http`, and the HTTP client that all kinds share."""
