"""The base that everything may use: displayable text, ids, hashes, time, and how a problem is said."""
