"""Test whether criteria would notice wrong answers, by mutating stored runs."""
