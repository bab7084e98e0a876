"""The smart re-driver: one pass over one dead-letter queue, from lease to report. docs/house.md walks through it.

    handler    the Lambda shell; `wiring` puts the tools of a pass together, `settings` says what can be set, `deployment` where things are
    core/      decides, and is pure: what a batch showed (evidence, verdict), which verdicts fall (judging), what that moves
               (breaker, by_hand), what becomes of a letter (triage, admission, decision), what is remembered (circuit,
               batch, ledger, case), what consumers report (outcomes, hearing) and whom that holds together (causes,
               cause_gate)
    passes/    one pass, on ports: peek, due, listen, read, assess, outflow, guard, report; its hands: apply, send_back, dry_run
    aws/       the adapters that fit the ports: queues, sources, books, state table, metrics

`core` imports nothing above it, `passes` knows no boto3, and only `wiring` and `handler` know both sides.
"""
