"""Everything that touches Textual's private parts, and what is written to the terminal."""
