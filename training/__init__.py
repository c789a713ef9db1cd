"""Recipes that train the models of helios.models: examples, losses, trainers."""
