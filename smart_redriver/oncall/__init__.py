"""The `redrive` command: see, understand and act on dead letters from a terminal.

Its rooms, from the top floor down:

    __main__    the way in; says what to install
    cli         the app: which commands there are
    commands    Typer's commands, made of the verbs' declarations
    console     the same as a web page, on this machine
    verbs       each verb: declared once in `declarations`, carried out by a module
    doctor      what `redrive doctor` checks
    moving      letters moved by hand: under the lease, paced, counted
    letters     letters chosen, looked at, shown, written to files
    status      how things stand: circuits, passes, alarms, of one queue or of all
    audit       who changed what, when and why
    deployment  what is deployed, and how it is reached: outputs, clients, session, where letters are
    terminal    words, tables, questions, exit codes

A module imports from its own floor and from those below. What is imported here is paid for at every start, so each
command imports what it needs when it is called.
"""
