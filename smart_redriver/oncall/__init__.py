"""The `redrive` command: see, understand and act on dead letters from a terminal.

Its rooms, from the top floor down:

    __main__    the way in; says what to install
    cli         the app: which commands there are
    commands    what can be typed: arguments, options, help, examples
    console     the same as a web page, on this machine
    verbs       what each command does
    doctor      what `redrive doctor` checks
    moving      letters moved by hand: under the lease, paced, counted
    letters     letters chosen, looked at, shown, written to files
    stack       the deployed stack: clients, places, session, snapshot, audit trail
    terminal    words, tables, questions, exit codes

A module imports from its own floor and from those below. What is imported here is paid for at every start, so each
command imports what it needs when it is called.
"""
