"""The JSON that this program prints and writes: a type for each document, from which its JSON Schema is made."""
