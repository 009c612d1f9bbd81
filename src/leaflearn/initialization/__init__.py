"""Contexts before any training, found with smooth surrogate models in closed form."""
