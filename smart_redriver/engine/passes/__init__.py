"""One pass: gather, decide, apply."""
