"""A function's log, written line by line while it runs, together with its metrics.

MiniStack writes the log of an invocation when the invocation has ended. A sleeping function may be minutes away from
its end, but its log lines belong to the time at which it writes them. So each line goes into CloudWatch Logs as it
comes, with the virtual time, in the stream that the function believes it has. A line in the embedded metric format
becomes metrics at once.
"""

import re
import threading
import time
from collections import Counter
from typing import Any

from ministack.core import lambda_runtime, responses
from ministack.services import cloudwatch_logs, lambda_svc

from . import metrics
from .patching import wrap

#: Ends the log of one invocation: the ASCII record separator.
END_OF_LOG = "\x1e"
#: Begins the line in which a worker names its log stream: the group separator.
NAMES_STREAM = "\x1d"

_of_thread = threading.local()


def install() -> None:
    _write_each_line()
    _remember_what_was_written()
    _write_the_rest()
    _find_any_of_some_terms()


def _write_each_line() -> None:
    def read_stderr(worker: Any) -> None:
        """Read it in a separate thread as long as the worker lives."""
        account, region = lambda_svc._account_region_from_function_config(worker.config)
        responses.set_request_account_id(account)
        responses.set_request_region(region)
        stream, lines = "unnamed", worker._stderr_queue
        try:
            for raw in worker._proc.stderr:
                line = raw.rstrip("\n")
                if line.startswith(NAMES_STREAM):
                    stream = line.removeprefix(NAMES_STREAM)
                    continue
                if not line.endswith(END_OF_LOG):
                    _write(worker.config, stream, line)
                    worker.written[line] += 1
                lines.put(line)
        except ValueError:  # the pipe was closed: the worker is gone
            pass

    lambda_runtime.Worker._read_stderr = read_stderr
    lambda_runtime.Worker.written = Counter()  # until the worker's first invocation begins


def _remember_what_was_written() -> None:
    @wrap(lambda_runtime.Worker, "invoke")
    def invoke(run: Any, worker: Any, *args: Any, **kwargs: Any) -> Any:
        worker.written = _of_thread.written = Counter()
        return run(worker, *args, **kwargs)


def _write_the_rest() -> None:
    @wrap(lambda_svc, "_emit_lambda_logs")
    def emit(log: Any, function: Any, request_id: str, text: str, *args: Any, **more: Any) -> Any:
        """Log MiniStack's own lines, and the traceback of a function that raised."""
        left: Counter[str] = getattr(_of_thread, "written", Counter()).copy()
        rest = []
        for line in (text or "").splitlines():
            if left[line]:
                left[line] -= 1
            else:
                rest.append(line)
        return log(function, request_id, "\n".join(rest), *args, **more)


def _write(config: dict[str, Any], stream: str, line: str) -> None:
    now = int(time.time() * 1000)
    metrics.publish_embedded(line)
    events = [{"timestamp": now, "message": line, "ingestionTime": now}]
    cloudwatch_logs._append_log_events(_stream(_group(config, now), stream, now), events)


def _group(config: dict[str, Any], now: int) -> dict[str, Any]:
    named = (config.get("LoggingConfig") or {}).get("LogGroup")
    name = named or f"/aws/lambda/{config['FunctionName']}"
    group: dict[str, Any] = cloudwatch_logs._log_groups.setdefault(
        name,
        {
            "arn": cloudwatch_logs._make_group_arn(name),
            "creationTime": now,
            "retentionInDays": None,
            "tags": {},
            "subscriptionFilters": {},
            "streams": {},
        },
    )
    return group


def _stream(group: dict[str, Any], name: str, now: int) -> dict[str, Any]:
    stream: dict[str, Any] = group["streams"].setdefault(
        name,
        {
            "events": [],
            "uploadSequenceToken": "1",
            "creationTime": now,
            "firstEventTimestamp": None,
            "lastEventTimestamp": None,
            "lastIngestionTime": None,
        },
    )
    return stream


def _find_any_of_some_terms() -> None:
    """`?"a" ?"b"` finds lines with any of its terms.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
    """

    @wrap(cloudwatch_logs, "_compile_filter_pattern")
    def compile_pattern(compile_it: Any, raw: str) -> Any:
        terms = re.findall(r'\?"([^"]+)"', raw or "")
        if not terms:
            return compile_it(raw)
        return lambda line: any(term in line for term in terms)
