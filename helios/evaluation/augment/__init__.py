"""Questions that are rows of a database: the tasks of DAQu, their baselines, and what context is worth."""
