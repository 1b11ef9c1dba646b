"""Fields: arrays whose layout is known when a kernel is compiled, placed in trees of nodes."""
