"""The gRPC door of auth: check shape, convert, call, convert."""
