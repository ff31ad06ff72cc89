import pytest
from support.records import tiny_plan

from fairtrial.record.models import Plan


@pytest.fixture
def plan() -> Plan:
    return tiny_plan()
