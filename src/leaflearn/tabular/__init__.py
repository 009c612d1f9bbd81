"""From a file to features, to a fitted model, and back to a file."""
