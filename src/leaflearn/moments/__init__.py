"""Statistics of each group over features, from which everything linear follows without the rows."""
