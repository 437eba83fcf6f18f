"""Write runs to one HTML file, to read in a browser or open in agenteval."""
