"""Questions into queries of a source's own language (OmniRetrieval 2.3)."""
