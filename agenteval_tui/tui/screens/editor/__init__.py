"""The Editor: a test as a form, its criteria, and each one's config."""
