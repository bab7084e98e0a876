"""Both ends of the terminal: words, tables, questions, Ctrl-C, and how a command ends. Knows nothing of letters."""
