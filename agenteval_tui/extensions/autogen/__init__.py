"""States of AutoGen's agents and teams."""
