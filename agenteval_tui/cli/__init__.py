"""The command line: a module a verb, imported when it is called."""
