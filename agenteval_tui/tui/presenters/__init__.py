"""Pure: from models to lines that a widget shows."""
