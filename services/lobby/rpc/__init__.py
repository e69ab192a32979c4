"""The gRPC edge of lobby: check shape, convert, call, convert."""
