"""Other people's programs: what would be executed, child processes, and what they say."""
