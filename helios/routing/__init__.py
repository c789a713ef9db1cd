"""Questions to sources: which ones to ask, in what words of theirs, and how their answers come together."""
