"""What people write: suites, tests, criteria; found, loaded with positions, rendered, saved."""
