"""Reading the contexts off the conflict itself, before any local model is trained."""
