"""Side-by-side measurements; each prints one JSON line a result."""
