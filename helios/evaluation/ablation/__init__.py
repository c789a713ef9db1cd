"""Ablations (HELIOS 5): the same questions searched without a stage, with other units, edges, beams or prompts."""
