"""What runs need around them: services, hooks, working folders, and what only one run may use at a time."""
