"""The two ways to fit: networks by gradient steps, scikit-learn models by refitting."""
