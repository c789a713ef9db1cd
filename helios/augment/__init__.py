"""What a database knows of a question's row, as context for its search (DAQu).

context        the values: attributes by column
augmenter      from a row to its context: keys, times, caps        (`schema`, `settings`, `words` are its parts)
encoding       the set of attributes as one vector beside the question's
cli            `helios augment show`
"""
