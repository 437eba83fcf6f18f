"""Other people's programs: what would be executed, child processes, and what they are told and may say."""
