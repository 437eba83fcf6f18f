"""Files of other tools, in and out, and what this program prints as data."""
