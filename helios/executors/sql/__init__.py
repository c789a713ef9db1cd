"""SQL: one guard for three dialects (`guard`, `nodes`, `functions`), and what the embedded engines share."""
