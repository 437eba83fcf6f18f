"""What programs ask of model servers: recorded by a proxy, answered again from the recording."""
