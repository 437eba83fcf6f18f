"""The smallest relaxations of a failing criterion."""
