"""Input and output on the terminal: words, tables, questions, Ctrl-C, exit codes. Knows nothing about letters."""
