"""Running tests: the plan, the engine, its events and commands, and the process that an execution lives in."""
