"""The engine: one pass over one dead-letter queue, from lease to report. docs/house.md has the map.

    config/    settings, and where the queues are
    messages/  letters, where they come from, and what is sent
    model/     what is known about the consumer, and what that allows; pure
    triage/    the decision about each letter; pure
    reports/   what consumers report; pure
    passes/    one pass, on ports
    aws/       the adapters over boto3 that fit the ports
    targets/   the targets of letters that SQS did not dead-letter
    wiring     joins passes and adapters for one deployment; `lambdas/redrive/handler.py` calls it

The pure rooms import nothing above them, `passes` knows no boto3, and only `wiring` and the handler know both sides.
"""
