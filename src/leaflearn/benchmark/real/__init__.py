"""Real tables with groups: leaflearn beside what a user would take instead."""
