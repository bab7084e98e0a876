"""Features that MiniStack lacks, patched in inside its process: `python -m emulator.overlay`.

| module | restores |
|---|---|
| `sqs_send` | limits of a message and of a batch; the trace header of each batch entry |
| `sqs_consume` | outdated receipt handles, visibility, long polls, what the metrics count |
| `sqs_requests` | one lock around all queues |
| `sqs_moves` | StartMessageMoveTask, ListMessageMoveTasks, ListDeadLetterSourceQueues |
| `metrics` | AWS/SQS metrics and embedded metric format (EMF) |
| `alarms` | alarms that look at dimensions, M of N, missing data, metric math and warm-up |
| `cloudformation` | properties that MiniStack drops, composite and metric-math alarms |
| `iam` | batch calls authorised as the single action, a function's EventInvokeConfig by its own;
signatures under a moved clock | | `lambda_workers` | environments that survive an exception;
logs collected without a wait | | `lambda_logs` | each line of a log as it is written;
filter patterns of which any term will do | | `lambda_events` | the queue of asynchronous invocations and its retries,
in virtual time | | `lambda_failures` | what an asynchronous invocation leaves that failed for good:
the event or a record, with its request | | `flights` | which invocations are under way |
| `turns`, `control` | one deterministic turn of every background loop, and its HTTP door |

Every patch replaces a private function, so `__main__` refuses any other MiniStack release. The
modules import MiniStack, which only exists in the emulator's own environment, and MiniStack is
untyped: mypy is told to leave this folder alone.
"""
