"""Pages about fitted models and experiments: HTML with charts, in single files."""
