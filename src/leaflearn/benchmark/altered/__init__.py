"""Real tables with known contexts: a part of the groups is altered, or a column is hidden."""
