"""`demo-rules`: a small rule-based shop assistant, and the shop it works for. A program, not an AI model."""
