"""Plans and reports as JSON documents, and a plan back from the job's folder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from glaunch.document import from_document, to_document
from glaunch.errors import ParseError
from glaunch.hostlist import expand, fold
from glaunch.placement.placement import OrderRow
from glaunch.plan import Plan
from glaunch.report.job import JobReport
from glaunch.request import Request
from glaunch.secret import shown_line, shown_words

PLAN_VERSION = 1
REPORT_VERSION = 1


def plan_document(plan: Plan) -> dict[str, Any]:
    """Schema glaunch.plan/1: the whole plan, without the values of secrets among a program's arguments and in lines of setup.

    `order` holds every node of the partition along the fabric, one entry a leaf with its nodes as a hostlist: 100,000 nodes are 0.3 MB.
    """
    return {**to_document("plan", PLAN_VERSION, replace(_as_shown(plan), order=())), "order": _leaves(plan.order)}


def _as_shown(plan: Plan) -> Plan:
    """A document is handed on, so it holds no more than is shown; the job itself reads its arguments elsewhere (command.sh)."""
    launch = replace(plan.launch, argv=shown_words(plan.launch.argv), setup=tuple(map(shown_line, plan.launch.setup)))
    return replace(plan, request=_request_as_shown(plan.request), launch=launch, components=tuple(map(_as_shown, plan.components)))


def _request_as_shown(request: Request) -> Request:
    return replace(
        request,
        command=shown_words(request.command),
        setup=tuple(map(shown_line, request.setup)),
        components=tuple(map(_request_as_shown, request.components)),
    )


def plan_from_document(document: object, where: str) -> Plan:
    """The plan that `plan_document` wrote (`json.load` of plan.json). Raises ParseError; `where` names the file."""
    if not isinstance(document, Mapping):
        return from_document(Plan, "plan", PLAN_VERSION, document, where)
    plan = from_document(Plan, "plan", PLAN_VERSION, {**document, "order": []}, where)
    return replace(plan, order=tuple(_rows(document.get("order"), f"{where}: order")))


def report_document(report: JobReport) -> dict[str, Any]:
    """Schema glaunch.report/1; its plan is written as `plan_document` writes it, without a schema of its own."""
    document = to_document("report", REPORT_VERSION, replace(report, plan=None))
    if report.plan is not None:
        document["plan"] = {name: value for name, value in plan_document(report.plan).items() if name != "schema"}
    return document


def _leaves(order: Sequence[OrderRow]) -> list[dict[str, str]]:
    """Neighbours in the order that share a leaf, as one entry."""
    groups = groupby(order, lambda row: (row.pod, row.leaf))
    return [{"pod": pod, "leaf": leaf, "nodes": fold(row.node for row in rows)} for (pod, leaf), rows in groups]


def _rows(entries: object, where: str) -> Iterator[OrderRow]:
    """The rows that `_leaves` put together; positions count from 0."""
    if not isinstance(entries, list):
        raise ParseError(where, repr(entries), "a list")
    position = 0
    for entry in entries:
        if not isinstance(entry, Mapping) or not all(isinstance(entry.get(name), str) for name in ("pod", "leaf", "nodes")):
            raise ParseError(where, repr(entry), 'an entry {"pod": …, "leaf": …, "nodes": …}')
        for node in expand(entry["nodes"]):
            yield OrderRow(node, position, entry["leaf"], entry["pod"])
            position += 1
