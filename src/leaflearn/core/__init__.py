"""The method itself: torch and numpy only, no scikit-learn, no plotting, no files."""
