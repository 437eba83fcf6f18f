"""Names of the plug-in's options that are used in several places."""

TRUST = "--agenteval-trust"
