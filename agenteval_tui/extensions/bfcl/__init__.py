"""Results of the Berkeley Function-Calling Leaderboard."""
