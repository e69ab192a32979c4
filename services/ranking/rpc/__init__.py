"""The gRPC door of ranking, and its view of the lobby's keys."""
