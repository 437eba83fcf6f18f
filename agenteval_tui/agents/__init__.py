"""What is tested: the interface of an agent, a module for each kind, tools, and the bundled agent."""
