"""The CDK side that others import: the construct `SmartRedriver`, its settings, and what it takes beside them.

The function's own `redrive.settings` decides at synth what it will accept at cold start.
"""

from redrive.databases import JobsDatabase
from redrive.settings import Mode, Settings
from redrive.targets import Origin
from smart_redriver.cdk.bundling import BundlingError
from smart_redriver.cdk.monitoring_settings import Alarms, MonitoringSettings
from smart_redriver.cdk.oncall_policies import OnCallPolicies
from smart_redriver.cdk.postgres_redriver import PostgresRedriver
from smart_redriver.cdk.redriver import SmartRedriver
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.cdk.topics import Topics

__all__ = [
    "Alarms",
    "BundlingError",
    "JobsDatabase",
    "Mode",
    "MonitoringSettings",
    "OnCallPolicies",
    "Origin",
    "PostgresRedriver",
    "Safeguards",
    "Settings",
    "SmartRedriver",
    "Topics",
]
