"""Two hundred adopted queues in one app: how long a synth takes, and `redrive status` over all of them on the local AWS."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.request import Request
from bench.results import Results, Table
from emulator.environments import ACCOUNT, REGION, ROOT
from emulator.process import LocalAws
from smart_redriver.cdk.queue_clashes import MAX_QUEUES

QUEUES, QUEUES_WHEN_QUICK = 200, 40
RUNS = 5
_NAME = "SmartRedriver"


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds on the clock, and of processors in the process and its children."""

    wall: float
    processor: float


def bench(request: Request) -> None:
    """Synthesize, deploy what outputs tell of, look, leave."""
    count = QUEUES_WHEN_QUICK if request.is_quick else QUEUES
    results = Results(name="load", title="Many queues in one app")
    with tempfile.TemporaryDirectory() as folder:
        synth = _spend(
            [sys.executable, str(ROOT / "app.py")],
            os.environ | _synthesizing(Path(folder), count) | _paths(),
        )
    with LocalAws() as aws:
        _make(aws, count)
        command = [sys.executable, "-m", "smart_redriver.oncall", "status"]
        looks = [_spend(command, os.environ | aws.environment() | _paths()) for _ in range(RUNS)]
    wall, processor = median(one.wall for one in looks), median(one.processor for one in looks)
    results.figures |= {
        "queues": count,
        "load_average": os.getloadavg()[0],
        "synth_seconds": {"wall": synth.wall, "processor": synth.processor},
        "status_seconds": [{"wall": one.wall, "processor": one.processor} for one in looks],
    }
    results.show(
        request,
        Table(
            title=f"{count} queues in {len(list(_stacks(count)))} stacks",
            headings=("what", "seconds", "of processors"),
            rows=[
                ["synth: bundled, and checked by cdk-nag", f"{synth.wall:.0f}", f"{synth.processor:.0f}"],
                [f"`redrive status`, median of {RUNS}", f"{wall:.1f}", f"{processor:.1f}"],
            ],
            note=f"At a load average of {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors, without a network. The command makes two calls a queue, 32 at a time.",
        ),
    )  # fmt: skip
    results.leave(request)


def _spend(command: Sequence[str], environment: Mapping[str, str]) -> Spent:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _paths() -> dict[str, str]:
    return {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'lambdas'}",
        "PATH": f"{ROOT / 'node_modules' / '.bin'}:{os.environ['PATH']}",
    }


def _stacks(count: int) -> Iterator[tuple[str, range]]:
    """The `stack` of so many queues, and their numbers."""
    for number, start in enumerate(range(0, count, MAX_QUEUES)):
        yield f"team-{number}" if number else "", range(start, min(start + MAX_QUEUES, count))


def _synthesizing(folder: Path, count: int) -> dict[str, str]:
    flags = json.loads((ROOT / "cdk.json").read_text())["context"]
    queues = [
        {
            "name": f"queue-{index}",
            "source_arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:queue-{index}",
            "dead_letter_arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:queue-{index}-dlq",
            **({"stack": stack} if stack else {}),
        }
        for stack, numbers in _stacks(count)
        for index in numbers
    ]
    context = json.dumps({**flags, "queues": queues})
    return {"CDK_CONTEXT_JSON": context, "CDK_OUTDIR": str(folder)}


def _make(aws: LocalAws, count: int) -> None:
    """Queues, a table, and stacks that tell of them as a deployment does."""
    sqs = aws.client("sqs")
    aws.client("dynamodb").create_table(
        TableName="state",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
    )

    def places(index: int) -> str:
        names = {"Source": "", "DeadLetter": "-dlq", "ParkingLot": "-lot"}
        urls = {
            f"{kind}QueueUrl": sqs.create_queue(QueueName=f"queue-{index}{end}")["QueueUrl"]
            for kind, end in names.items()
        }
        return json.dumps(urls | {"RedriveMode": "automatic"})

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(places, range(count)))
    names = ["-".join(filter(None, (_NAME, stack))) for stack, _ in _stacks(count)]
    for name, (_, numbers) in zip(names, _stacks(count), strict=True):
        outputs = {f"Queue{index}Redriver": told[index] for index in numbers}
        outputs |= {"StateTableName": "state"}
        outputs |= {"RedriverStacks": " ".join(names)} if name == _NAME else {}
        template = _template(outputs)
        aws.client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(template))


def _template(outputs: Mapping[str, str]) -> dict[str, Any]:
    return {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
