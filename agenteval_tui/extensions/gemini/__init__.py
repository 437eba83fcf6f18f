"""The kind `gemini`: servers that speak Google's Gemini API."""
