"""The page: questions, answers and evidence for people, made on the server, working without JavaScript."""
