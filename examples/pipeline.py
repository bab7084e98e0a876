"""A CDK pipeline that deploys the stacks of `queues` in cdk.json. Copy it to the root of your repository."""

import aws_cdk as cdk
from aws_cdk import pipelines

from stacks.accounts import make_stacks, read_homes

app = cdk.App()
home = cdk.Environment(account="111122223333", region="eu-west-1")
stack = cdk.Stack(app, "RedriverPipeline", env=home)
source = pipelines.CodePipelineSource.connection(
    "team/redriver",
    "main",
    connection_arn="arn:aws:codestar-connections:eu-west-1:111122223333:connection/1",
)
synth = pipelines.ShellStep(
    "Synth",
    input=source,
    commands=[
        "make .venv/.ready node_modules/.ready",
        "node_modules/.bin/cdk synth --quiet --app '.venv/bin/python pipeline.py'",
    ],
)
pipeline = pipelines.CodePipeline(stack, "Pipeline", synth=synth, cross_account_keys=True)
production = cdk.Stage(app, "Production")
make_stacks(production, read_homes(app.node))
pipeline.add_stage(production)
app.synth()
