"""How often contexts are recovered on tasks whose truth is known."""
