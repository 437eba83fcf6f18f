"""What few people need: a folder each, which only its entry points name. The core imports none."""
