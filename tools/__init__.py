"""Everything on one machine: what `make run`, `make demo` and the tests start."""
