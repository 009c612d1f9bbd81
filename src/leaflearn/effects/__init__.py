"""Group effects: how groups deviate from their context, as random effects."""
