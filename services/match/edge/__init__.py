"""Two doors, gRPC and WebSocket, over one relay."""
