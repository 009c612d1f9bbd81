"""The command `leaflearn`: one file a verb."""
