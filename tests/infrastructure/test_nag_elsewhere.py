"""cdk-nag in somebody else's app: nothing of ours is found, since the reasons travel with the constructs."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sqs as sqs
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

from smart_redriver.cdk import Alarms, MonitoringSettings, OnCallPolicies, Safeguards, SmartRedriver
from tests.infrastructure.adopted import ACCOUNT, REGION, key_arn, queue_arn
from tests.infrastructure.app_process import UNBUNDLED, findings
from tests.infrastructure.conftest import FLAGS

STRICT = Safeguards(
    encryption_key_arn=key_arn(1),
    vpc_id="vpc-0123456789abcdef0",
    vpc_subnet_ids=("subnet-0123456789abcdef0",),
)


@pytest.mark.parametrize("flags", [{}, FLAGS], ids=["no flags", "recommended flags"])
@pytest.mark.parametrize("safeguards", [Safeguards(), STRICT], ids=["plain", "strict"])
def test_both_packs_find_nothing_of_ours(tmp_path, flags, safeguards):
    app = cdk.App(context={**flags, **UNBUNDLED}, outdir=str(tmp_path / "out"))
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    stack = cdk.Stack(app, "Shop", env=cdk.Environment(account=ACCOUNT, region=REGION))
    source, dead = (
        sqs.Queue.from_queue_arn(stack, name, queue_arn(name)) for name in ("orders", "orders-dlq")
    )
    redriver = SmartRedriver(
        stack,
        "Redriver",
        source_queue=source,
        dead_letter_queue=dead,
        monitoring=MonitoringSettings(alarms=Alarms.ALL, dashboard_widget=True),
        safeguards=safeguards,
    )
    OnCallPolicies(stack, "OnCall", redrivers=[redriver])

    app.synth()

    assert findings(tmp_path / "out") == []


def test_a_finding_of_the_apps_own_still_fails_its_synth(tmp_path):
    app = cdk.App(context=UNBUNDLED, outdir=str(tmp_path / "out"))
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    stack = cdk.Stack(app, "Shop")
    dead = sqs.Queue(stack, "Dead")
    fails_to = sqs.DeadLetterQueue(queue=dead, max_receive_count=5)
    source = sqs.Queue(stack, "Source", dead_letter_queue=fails_to)
    SmartRedriver(stack, "Redriver", source_queue=source, dead_letter_queue=dead)

    with pytest.raises(RuntimeError, match="SQS"):
        app.synth()

    assert {one.split()[0] for one in map(str, findings(tmp_path / "out"))}
