"""The method itself: Algorithm 1, its allocation rules, losses, model sets and training loop."""
