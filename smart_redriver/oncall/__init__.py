"""The `redrive` command: see, understand and act on dead letters from a terminal.

`cli` and `commands` declare, one module per capability does. What is imported here is paid for at every start, so
each command imports what it needs when it is called.
"""
