"""The paper's experiments, and tasks whose truth is known."""
