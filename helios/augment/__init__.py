"""What a database knows of a question's row, as context for its search (DAQu)."""
