"""The `redrive` command: see, understand and act on dead letters from a terminal.

Its packages and modules, from the top layer down:

    __main__    the way in; says what to install
    cli         the app: which commands there are
    commands    Typer's commands, made from the verbs' declarations
    console     the same as a web page, on this machine
    verbs       each verb: declared once in `declarations`, carried out by a module
    doctor      what `redrive doctor` checks
    moving      letters moved by hand: under the lease, paced, counted
    letters     letters chosen, looked at, shown, written to files
    status      the state of one queue or of all: circuits, passes, alarms
    audit       who changed what, when and why
    deployment  what is deployed, and how to reach it: outputs, clients, session, where letters are
    terminal    words, tables, questions, exit codes

A module imports only from its own layer and from those below. Imports here slow down every start, so each command
imports what it needs when it is called.
"""
