"""Other tools' formats: a module each."""
