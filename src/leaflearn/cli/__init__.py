"""The command `leaflearn`: one file per verb; modules with a leading underscore serve several."""
