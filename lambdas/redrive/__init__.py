"""The smart re-driver: one pass over one dead-letter queue, from lease to report.

    handler      the Lambda shell; `wiring` puts the tools of a pass together, `settings` says what can be told
    core/        decides, and is pure: what a batch showed (evidence, verdict), what that moves (breaker), what becomes
                 of a letter (triage, admission), what is remembered (circuit, batch, ledger, case)
    passes/      one pass, on ports: peek and read, assess, outflow, guard, report; `apply` and `send_back` are its hands
    aws/         the adapters that fit the ports: queues, sources, books, state table, metrics

`core` imports nothing above it, `passes` knows no boto3, and only `wiring` and `handler` know both sides.
"""
