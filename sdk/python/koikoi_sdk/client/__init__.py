"""The client's I/O: services through the gateway, the relay through either door, and the durable session."""
