"""Questions, measures, runs and baselines."""
