"""Plans and reports as JSON documents, and a plan back from the job's folder."""

from typing import Any

from glaunch.document import from_document, to_document
from glaunch.plan import Plan
from glaunch.report.job import JobReport

PLAN_VERSION = 1
REPORT_VERSION = 1


def plan_document(plan: Plan) -> dict[str, Any]:
    """Schema glaunch.plan/1: the whole plan, as it is."""
    return to_document("plan", PLAN_VERSION, plan)


def plan_from_document(document: object, where: str) -> Plan:
    """The plan that `plan_document` wrote (`json.load` of plan.json). Raises ParseError; `where` names the file."""
    return from_document(Plan, "plan", PLAN_VERSION, document, where)


def report_document(report: JobReport) -> dict[str, Any]:
    """Schema glaunch.report/1."""
    return to_document("report", REPORT_VERSION, report)
