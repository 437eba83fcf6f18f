"""Find the smallest input that still fails for the same cause."""
