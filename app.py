"""Synthesizes the smart re-driver. Calls no AWS service and needs no credentials."""

import sys

import aws_cdk as cdk

from smart_redriver.cdk import BundlingError
from stacks.accounts import make_stacks, read_homes
from stacks.redriver_stack import add_checks
from stacks.settings import SettingsError


def main() -> None:
    """Build and synthesize the app; exit 1 with one message if settings or tools are wrong."""
    app = cdk.App()
    try:
        make_stacks(app, read_homes(app.node))
    except (SettingsError, BundlingError) as error:
        sys.exit(str(error))

    add_checks(app)
    app.synth()


if __name__ == "__main__":
    main()
