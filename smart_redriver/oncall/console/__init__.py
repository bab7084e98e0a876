"""`redrive console`: the command as a web page, served to one person on their own machine.

Whatever is shown or changed goes through the verbs, on terminals that are a page instead of a screen:

    server      the socket, and the process's end
    app         which address answers what; `guard` keeps other pages of the browser out
    api         every address of the API, once: `openapi` describes what `app` routes
    looks       what is shown: queues, timeline, causes, letters, one letter, history
    orders      what is changed, as the API takes it
    task        one order at work: its plan, its question, its progress, its end
    sessions    a session for each request, with one person's credentials
    shelf       the ledger, read once for all who look within a few seconds
    fields      what may be said in a request, and what is refused
    static      the page
"""
