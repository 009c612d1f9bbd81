"""What changes a fitted model: prune, merge, partial_fit."""
