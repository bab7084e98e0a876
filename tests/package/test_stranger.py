"""Someone else's app, from the wheel alone: deployed on the local AWS, and then looked after with the command."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from emulator import cdk
from emulator.process import LocalAws
from tests.e2e.checked_aws import checked_aws
from tests.package.installed import Environment, build_wheel, install
from tests.package.test_installed import APP

SHOP = '''
import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from smart_redriver.cdk import MonitoringSettings, SmartRedriver


class Orders(cdk.Stack):
    """Queues of two services, of which the second one wants no alarms."""

    def __init__(self, scope):
        super().__init__(scope, "Shop")
        told = MonitoringSettings(paging_emails=("ann@example.com",))
        for name, monitoring in (("Orders", told), ("Mails", None)):
            dead = sqs.Queue(self, f"{name}Dead", retention_period=cdk.Duration.days(14))
            fails_to = sqs.DeadLetterQueue(queue=dead, max_receive_count=3)
            SmartRedriver(
                self, f"{name}Redriver",
                source_queue=sqs.Queue(self, name, dead_letter_queue=fails_to),
                dead_letter_queue=dead,
                monitoring=monitoring,
            )
'''  # fmt: skip


@dataclass
class Shop:
    """The deployed app, and its owner's command."""

    aws: LocalAws
    on_call: Environment
    folder: Path
    outputs: dict[str, str]

    def redrive(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.on_call.run(
            "redrive", *arguments, "--stack", "Shop", cwd=self.folder, **self.variables()
        )

    def variables(self) -> dict[str, str]:
        """What a shell has that is to reach the local AWS."""
        ours = {"PATH", "PYTHONPATH", "VIRTUAL_ENV"}
        return {name: one for name, one in self.aws.environment().items() if name not in ours}

    def depth(self, place: str) -> int:
        url = json.loads(self.outputs["OrdersRedriver"])[place]
        answer = self.aws.client("sqs").get_queue_attributes(
            QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"]
        )
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])

    def die(self, body: str) -> str:
        """Send a letter to the DLQ of orders; its id."""
        url = json.loads(self.outputs["OrdersRedriver"])["DeadLetterQueueUrl"]
        sent = self.aws.client("sqs").send_message(QueueUrl=url, MessageBody=body)
        return str(sent["MessageId"])


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
    in_an_app = install(wheel, tmp_path_factory.mktemp("cdk") / "venv", extra="cdk")
    on_call = install(wheel, tmp_path_factory.mktemp("oncall") / "venv", extra="console")
    for name in ("core", "fakes", "redrive", "stacks"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("OURS = False\n")
    (folder / "stacks" / "orders.py").write_text(SHOP)
    (folder / "app.py").write_text(APP)
    (folder / "cdk.json").write_text(json.dumps({"app": f"{in_an_app.folder}/bin/python app.py"}))
    with checked_aws() as aws:
        cdk.bootstrap(aws)
        outputs = cdk.deploy(aws, folder, {}, folder / "deployment")
        yield Shop(aws, on_call, folder, outputs)


def test_the_command_finds_both_re_drivers_and_doctor_mends_nothing_once_a_pass_has_run(
    shop: Shop,
) -> None:
    status = shop.redrive("status", "--json")
    for queue in ("Orders", "Mails"):
        assert shop.redrive("run", "--queue", queue, "--yes").returncode == 0
    well = shop.redrive("doctor", "--all")

    mails, orders = (one["queue"] for one in json.loads(status.stdout)["queues"])
    assert mails.startswith("Shop-Mails")
    assert orders.startswith("Shop-Orders")
    assert well.returncode == 0, well.stdout + well.stderr
    assert "Somebody is subscribed to" in well.stdout
    assert "The stack asks for no alarms for this queue" in well.stdout


def test_a_letter_is_parked_and_replayed(shop: Shop) -> None:
    letter = shop.die('{"order": 1}')

    parked = shop.redrive("park", letter, "--queue", "Orders", "--yes")
    assert (parked.returncode, shop.depth("ParkingLotQueueUrl")) == (0, 1), parked.stderr
    replayed = shop.redrive("replay", "--all", "--queue", "Orders", "--yes")

    assert replayed.returncode == 0, replayed.stderr
    assert (shop.depth("ParkingLotQueueUrl"), shop.depth("SourceQueueUrl")) == (0, 1)


def test_the_console_shows_both_queues(shop: Shop) -> None:
    command = [str(shop.on_call.folder / "bin" / "redrive"), "console", "--stack", "Shop", "--json"]
    with subprocess.Popen(
        command, cwd=shop.folder, env=shop.variables(), stdout=subprocess.PIPE, text=True
    ) as console:
        try:
            assert console.stdout
            said = "".join(iter(console.stdout.readline, "}\n")) + "}"
            address, _, token = str(json.loads(said)["url"]).partition("#token=")
            page = _read(address)
            status = json.loads(_read(f"{address}api/status", token))
        finally:
            console.terminate()

    assert "<!doctype html>" in page
    assert "Orders" in json.dumps(status)
    assert "Mails" in json.dumps(status)


def _read(address: str, token: str = "") -> str:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urlopen(Request(address, headers=headers)) as answer:
        return str(answer.read().decode())
