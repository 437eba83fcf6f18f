"""The figures of the project: a module each, side by side with what they are compared to."""
