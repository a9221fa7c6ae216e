"""Which nodes, and in which order the ranks stand on them."""
