"""What everything may use: errors, ids, numbers, safe text, redaction, paths, time spans."""
