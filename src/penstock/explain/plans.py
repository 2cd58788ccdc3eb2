"""What `penstock explain` shows: streams, paths, synopses, who shares them, and the sinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeAlias

from penstock.engine.joins import probe_orders
from penstock.join_graph import JoinGraph
from penstock.language.kafka import topic_of
from penstock.model import STREAM, Application, Query, Relation, Sink, SqlView, Stream, Window
from penstock.plan import Group, Key, Operator, Path, Plan, Shape, SharedJoin
from penstock.planning.early_selections import (
    MOST_ALTERNATIVES,
    EarlySelection,
    early_selection,
    told,
)
from penstock.planning.fanout import Fanout, TaggedKey, fan_out
from penstock.planning.shapes import conjunction
from penstock.rendering import apart, render, signed_span, span, window_length

Segments: TypeAlias = Mapping[str, Sequence[Sequence[str]]]
"""For each path, its segments; each has the ids of the operators that always run together."""



@dataclass(frozen=True, slots=True)
class Renewal:
    """What is kept for a group of window aggregates, and how often its answers are refreshed."""

    families: tuple[str, ...]
    """What is kept of each pane, in words."""
    policy: str
    periods: Mapping[str, int]
    """The period of each query, in panes: it is answered at least this often."""
    costs: Mapping[str, float]
    """Per pane, the cost of the policy's ``chosen`` schedule and of the two extremes."""
    ways: Sequence[tuple[Mapping[int, int], float]] = field(default=())
    """Every way to shorten periods with its cost per pane, cheapest first. A way is the period that
    the queries of each period get. A group with too many ways lists none."""


Renewals: TypeAlias = Mapping[str, Renewal]
"""By the id of the group."""

_MOST_NAMES = 8
_MOST_SHAPES = 16
_MOST_WAYS = 6


def explain(
    application: Application, plan: Plan, segments: Segments | None = None,
    renewals: Renewals | None = None,
) -> str:
    """The plan as text; long lists of names are shortened.

    Without ``segments`` every path is one segment, as under FIFO. Without ``renewals`` the text
    does not say how often window aggregates are answered.
    """
    return _as_text(explain_json(application, plan, segments, renewals))


def explain_query(
    application: Application, plan: Plan, query: str, segments: Segments | None = None,
    renewals: Renewals | None = None,
) -> str:
    """The plan as one query sees it: its streams, its paths, and who shares them."""
    told = explain_json(application, plan, segments, renewals)
    reads = application.queries[query].streams
    paths = {path.id for path in plan.paths_of(query)}

    def asks(some: Mapping[str, Any]) -> bool:
        return any(one["name"] == query for one in some["queries"])

    return _as_text({
        "streams": [stream for stream in told["streams"] if stream["name"] in reads],
        "paths": [path for path in told["paths"] if path["id"] in paths],
        "joins": list(filter(asks, told["joins"])),
        "groups": list(filter(asks, told["groups"])),
        "relations": list(filter(lambda one: query in one["queries"], told["relations"])),
        "views": [view for view in told["views"] if query in view["queries"]],
        "queries": [one for one in told["queries"] if one["name"] == query],
    })


def _as_text(told: Mapping[str, Any]) -> str:
    parts = (
        _section("streams", [line for stream in told["streams"] for line in _stream_text(stream)]),
        _section("paths", [line for path in told["paths"] for line in _path_text(path)]),
        _section("joins", [line for join in told["joins"] for line in _join_text(join)]),
        _section("synopses", [line for group in told["groups"] for line in _group_text(group)]),
        _section("relations", list(map(_relation_text, told["relations"]))),
        _section("views", [_view_text(view) for view in told["views"]]),
        _section("queries", list(_queries_text(told["queries"]))),
    )
    return "\n".join(part for part in parts if part)


def explain_json(
    application: Application, plan: Plan, segments: Segments | None = None,
    renewals: Renewals | None = None,
) -> dict[str, Any]:
    """The plan as data for JSON, with every name."""
    return {
        "streams": [_stream(stream, plan) for stream in application.streams.values()],
        "paths": [_path(plan, path, segments) for path in plan.paths],
        "joins": [_join(plan, join) for join in plan.joins],
        "groups": [_group(plan, group, (renewals or {}).get(group.id)) for group in plan.groups],
        "relations": [_relation(relation, plan) for relation in application.relations.values()
                      if relation.refresh is not None],
        "views": [_view(view, plan) for view in application.views.values()],
        "queries": [_query(plan, query) for query in plan.queries],
    }


# --- as data ---------------------------------------------------------------------------------


def _stream(stream: Stream, plan: Plan) -> dict[str, Any]:
    return {
        "name": stream.name,
        "columns": {column.name: str(column.type) for column in stream.columns},
        "computed": {made.name: render(made.expression) for made in stream.computed},
        "format": stream.format,
        "derived": stream.derived,
        "path": stream.path or topic_of(stream),
        "time": stream.time,
        "lateness": stream.lateness,
        "read_by": [*(path.id for path in plan.paths if path.reads == stream.name),
                    *(join.id for join in plan.joins if stream.name in join.streams)],
    }


def _relation(relation: Relation, plan: Plan) -> dict[str, Any]:
    every = relation.refresh
    return {
        "name": relation.name,
        "read": when_read(relation),
        "every": None if every == inf else every,
        "queries": [query.name for query in plan.queries if any(
            lookup.relation == relation.name
            for branch in query.branches for lookup in branch.lookups)],
    }


def when_read(relation: Relation) -> str:
    """When a relation is read, in words."""
    if relation.refresh is None:
        return "once, when a run begins"
    again = "when asked" if relation.refresh == inf else (
        f"every {span(round(relation.refresh * 1e6))}")
    return f"when a run begins, and again {again}"


def _path(plan: Plan, path: Path, segments: Segments | None) -> dict[str, Any]:
    shared = len(path.members) > 1
    return {
        "id": path.id,
        "stream": path.reads,
        "relations": [lookup.relation for lookup in path.lookups],
        "expensive": path.expensive,
        "queries": list(dict.fromkeys(member.query for member in path.members)),
        "members": [str(member) for member in path.members],
        "operators": [_operator(operator) for operator in path.operators],
        "conjunction": [one.id for one in path.conjunction],
        "segments": _segments(path, segments),
        **(_sharing(plan, path) if shared and not path.shared else {}),
    }


def _operator(operator: Operator) -> dict[str, str]:
    return {"id": operator.id, "kind": operator.kind, "text": operator.text}


def _segments(path: Path, segments: Segments | None) -> list[list[str]]:
    whole = [[operator.id for operator in path.operators]]
    return [list(segment) for segment in (segments or {}).get(path.id, whole)]


def _sharing(plan: Plan, path: Path) -> dict[str, Any]:
    branches = [plan.branch(member) for member in path.members]
    fanout = fan_out([one if one.join is None else one.over_pairs for one in branches])
    return {
        "lookups": [_lookup(key) for key in fanout.keys],
        "shapes": _shapes(fanout, path),
        "table_rows": fanout.table.num_rows,
    }


def _lookup(lookup: TaggedKey) -> dict[str, Any]:
    expression = lookup.key.expression
    told: dict[str, Any] = {"kind": lookup.key.kind, "text": _looked_up(lookup.key)}
    if expression is not None:
        told["expression"] = render(expression)
    if lookup.grid is not None:
        told["bins"] = lookup.grid.last - lookup.grid.first + 1
    return told


def _looked_up(key: Key) -> str:
    if key.expression is None:
        return "asked of every row"
    shown = render(key.expression)
    return f"one look-up by {shown}" if key.kind == "equal" else f"one look-up by bin of {shown}"


def _shapes(fanout: Fanout, path: Path) -> list[dict[str, Any]]:
    """The conditions that occur, with the members that have them; what they select is left out."""
    told: dict[tuple[str, str], list[int]] = {}
    for shape, riders in zip(fanout.shapes, fanout.riders, strict=True):
        told.setdefault((_conditions(shape), _looked_up(shape.key)), []).extend(riders)
    return [
        {
            "conditions": conditions,
            "lookup": lookup,
            "count": len(riders),
            "members": [str(path.members[n]) for n in sorted(riders)],
        }
        for (conditions, lookup), riders in told.items()
    ]


def _conditions(shape: Shape) -> str:
    return conjunction(shape.where) or "every row"


def _join(plan: Plan, join: SharedJoin) -> dict[str, Any]:
    branches = [plan.branch(member) for member in join.members]
    graph, named = JoinGraph.of(len(join.streams), join.on), probe_orders.names(join.streams)
    sides = [early_selection(branches, STREAM + side) for side in range(len(join.streams))]
    made = [condition for side in sides for condition in side.all_ask]
    above = [condition for branch in branches for condition in branch.where
             if condition not in made]
    return {
        "id": join.id,
        "streams": list(join.streams),
        "shape": graph.shape if len(join.streams) > 2 else "",
        "probes": {named[stream]: [named[other] for other in graph.valid(stream, others)]
                   for stream, others in _others(join)} if len(join.streams) > 2 else {},
        "on": conjunction(join.on),
        "span": join.span,
        "before": conjunction(made),
        "before_some": {alias: told(side.one_of) for alias, side in zip(
            _aliases(join), sides, strict=True) if side.one_of},
        "whole": {alias: _why_whole(join, side) for alias, side in zip(
            _aliases(join), sides, strict=True) if side.wants_all is not None or side.too_many},
        "above": len(above),
        "shared": not join.path.expensive or join.path.end == "panes",
        "panes": join.path.end == "panes",
        "rows": join.rows,
        "queries": [{"name": member.query, "lower": branch.join.lower, "upper": branch.join.upper}
                    for member, branch in zip(join.members, branches, strict=True)
                    if branch.join is not None],
        "path": _path(plan, join.path, None),
    }


def _others(join: SharedJoin) -> Iterator[tuple[int, list[int]]]:
    """Each stream of a join with all others, as they are written."""
    numbers = range(len(join.streams))
    for stream in numbers:
        yield stream, [other for other in numbers if other != stream]


def _aliases(join: SharedJoin) -> tuple[str, ...]:
    """The sides of a join by their streams; those of one stream are numbered."""
    if len(set(join.streams)) == len(join.streams):
        return join.streams
    return tuple(f"{stream} ({number})" for number, stream in enumerate(join.streams, start=1))


def _why_whole(join: SharedJoin, side: EarlySelection) -> str:
    """Why rows are not selected before a join, although some of its queries select."""
    if side.wants_all is not None:
        return f"{join.members[side.wants_all].query} asks for all of them"
    return (f"its queries ask for {side.too_many} different things, and more than "
            f"{MOST_ALTERNATIVES} would cost a row more than they save")


def _group(plan: Plan, group: Group, renewal: Renewal | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": group.id,
        "path": group.path,
        "parts": list(group.parts),
        "paired": group.paired,
        "where": conjunction(group.where),
        "keys": [render(key) for key in group.keys],
        "pane": group.pane,
        "panes": group.span,
        "queries": [_asking(plan, group, member.query, renewal) for member in group.members],
    }
    if renewal is not None:
        told |= {
            "families": list(renewal.families),
            "refresh": renewal.policy,
            "costs": dict(renewal.costs),
            "ways": [{"periods": {str(own): taken for own, taken in periods.items()}, "cost": cost}
                     for periods, cost in renewal.ways],
        }
    return told


def _asking(plan: Plan, group: Group, name: str, renewal: Renewal | None) -> dict[str, Any]:
    """A query of a group, with times in microseconds instead of panes."""
    window = _window(plan, name)
    told = {"name": name, "window": window.covered, "slide": window.slide,
            "exactly": window.exactly}
    if window.gap:
        told = {"name": name, "gap": window.gap}
    if window.kept:
        told["empty_groups"] = window.kept
    if renewal is not None:
        told["period"] = renewal.periods[name] * group.pane
    return told


def _window(plan: Plan, name: str) -> Window:
    window = plan.query(name).branches[0].window
    assert window is not None
    return window


def _view(view: SqlView, plan: Plan) -> dict[str, Any]:
    branches = view.branches
    return {
        "name": view.name,
        "columns": {name: str(type_) for name, type_ in branches[0].outputs},
        "streams": list(dict.fromkeys(name for branch in branches for name in branch.streams)),
        "relations": list(dict.fromkeys(
            lookup.relation for branch in branches for lookup in branch.lookups
            if not lookup.unnests)),
        "views": list(view.views),
        "queries": [query.name for query in plan.queries if view.name in query.views],
    }


def _query(plan: Plan, query: Query) -> dict[str, Any]:
    return {
        "name": query.name,
        "sinks": [{"kind": sink.kind, "target": sink.target} for sink in query.sinks],
        "latency": query.latency,
        "priority": query.priority,
        "lifetime": query.lifetime,
        "start": query.start,
        "paths": [path.id for path in plan.paths_of(query.name)],
    }


# --- as text ---------------------------------------------------------------------------------


def _section(title: str, lines: Sequence[str]) -> str:
    body = "\n".join(f"  {line}".rstrip() for line in lines).rstrip()
    return f"{title}\n{body}\n" if body else ""


def _stream_text(stream: Mapping[str, Any]) -> Iterator[str]:
    columns = ", ".join(f"{name} {type_}" for name, type_ in stream["columns"].items())
    yield f"{stream['name']} ({columns})"
    source = f"{stream['format']} '{stream['path']}'" if stream["path"] else stream["format"]
    source = f"the query {stream['name']}" if stream["derived"] else source
    time = f", time {stream['time']}" if stream["time"] else ", time of arrival"
    late = f", lateness {stream['lateness']:g} s" if stream["lateness"] else ""
    yield f"    from {source}{time}{late}"
    yield from (f"    computed: {name} = {text}" for name, text in stream["computed"].items())
    yield f"    read once, for {_names(stream['read_by'], 'paths')}"


def _path_text(path: Mapping[str, Any]) -> Iterator[str]:
    count = len(path["segments"])
    yield f"{path['id']}: {_whose(path)}, {'one segment' if count == 1 else f'{count} segments'}"
    operators = {operator["id"]: operator for operator in path["operators"]}
    last = path["operators"][-1]["id"]
    for number, segment in enumerate(path["segments"], start=1):
        mark = f"segment {number}" if len(path["segments"]) > 1 else ""
        for id in segment:
            operator = operators[id]
            line = f"{operator['kind']:<8} {operator['text']}"
            if len(path["conjunction"]) > 1 and id in path["conjunction"]:
                line += "  (any order)"
            yield f"{'└─' if id == last else '├─'} {f'{line:<60} {mark}' if mark else line}"
            if "shapes" in path and operator["kind"] == "fanout":
                yield from (f"│    {line}" for line in _shapes_text(path))
            mark = mark and "    ″"
    yield ""


def _whose(path: Mapping[str, Any]) -> str:
    source = " with ".join([path["stream"], *path["relations"]])
    if len(path["members"]) == 1:
        return f"{path['members'][0]} over {source}"
    return f"{_names(path['members'], 'queries')} share {source}"


def _shapes_text(path: Mapping[str, Any]) -> Iterator[str]:
    shapes = sorted(path["shapes"], key=lambda shape: -shape["count"])
    shown = shapes[:_MOST_SHAPES]
    wide = max(len(str(shape["count"])) for shape in shown)
    long = min(max(len(shape["conditions"]) for shape in shown), 56)
    for shape in shown:
        yield f"{shape['count']:>{wide}} x {shape['conditions']:<{long}}  ({shape['lookup']})"
    if len(shapes) > len(shown):
        rest = sum(shape["count"] for shape in shapes[_MOST_SHAPES:])
        yield f"{rest:>{wide}} x {len(shapes) - len(shown)} other conditions"


_SHAPES = {"star": "a star", "acyclic": "an acyclic graph", "cyclic": "a cycle"}


def _join_text(join: Mapping[str, Any]) -> Iterator[str]:
    names = [query["name"] for query in join["queries"]]
    whose = "a window of its own" if len(names) == 1 else "one window for all"
    yield f"{join['id']}: {_names(names, 'queries')}, {whose}"
    on = join["on"] or "nothing that Spark can compare: Python is asked of every two rows in reach"
    *first, last = join["streams"]
    yield f"    {', '.join(first)} and {last} on {on}"
    if join["shape"]:
        yield (f"    {_SHAPES[join['shape']]}; rows of each stream probe the others one by one, at "
               "first in this order:")
        for stream, others in join["probes"].items():
            yield f"      {stream}: {', '.join(others)}"
    if not join["shared"]:
        yield "    not shared: a query that calls Python does not hold others up"
    if join["before"]:
        every = "" if len(names) == 1 else ", which all its queries ask for"
        yield f"    before the join: {join['before']}{every}"
    for side, alternatives in join["before_some"].items():
        yield f"    before the join, of {side}: {alternatives}, since no query wants other rows"
    rest = " that are left" if join["before"] else ""
    for side, why in join["whole"].items():
        yield f"    before the join, of {side}: all rows{rest}, since {why}"
    if join["above"] and len(names) > 1 and not join["panes"]:
        which = "every other selection" if join["before"] else "all selections"
        yield f"    above the join: {which}, so that queries share it whatever they select"
    yield from (f"    {line}" for line in _bounds_text(join["queries"], join["rows"]))
    yield from (f"    {line}" for line in _path_text(join["path"]))


def _bounds_text(queries: Sequence[Mapping[str, Any]], rows: bool) -> Iterator[str]:
    """Queries of the same window, in one line; the shortest first."""
    alike: dict[tuple[int, int], list[str]] = {}
    for query in queries:
        alike.setdefault((query["lower"], query["upper"]), []).append(query["name"])
    for lower, upper in sorted(alike, key=lambda bounds: max(map(abs, bounds))):
        length = window_length(lower, upper)
        if rows:
            window = "the latest row" if upper == 0 else f"the latest {apart(lower, upper, rows)}"
        elif length:
            window = f"less than {span(length)} apart"
        else:
            between = f"{signed_span(lower)} to {signed_span(upper)}"
            window = f"the right row {between} after the left one"
        yield f"{window}: {_names(alike[lower, upper], 'queries')}"


def _group_text(group: Mapping[str, Any]) -> Iterator[str]:
    names = [query["name"] for query in group["queries"]]
    whose = "of its own" if len(names) == 1 else "shared"
    yield f"{group['id']}: {_names(names, 'queries')}, one synopsis {whose}"
    by = f"grouped by {', '.join(group['keys'])}" if group["keys"] else "in one group"
    rows = "pairs" if group["paired"] else "rows"
    yield f"    {rows + ' where ' + group['where'] if group['where'] else 'all ' + rows}, {by}"
    parts = ", ".join(group["parts"])
    made = f"merged from {parts}" if parts else f"made on {group['path']}"
    yield f"    panes of {span(group['pane'])}, {made}; {group['panes']} in the longest window"
    if "families" in group:
        yield f"    each pane keeps {'; '.join(group['families'])}"
    yield from (f"    {line}" for line in _windows_text(group["queries"]))
    if "costs" in group:
        yield from (f"    {line}" for line in _costs_text(group))
    yield ""


def _windows_text(queries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Queries of the same window and slide, in one line."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for query in queries:
        if "gap" in query:
            alike.setdefault((f"sessions with gaps below {span(query['gap'])}", "", ""),
                             []).append(query["name"])
            continue
        slide = ("exactly " if query["exactly"] else "") + span(query["slide"])
        period = query.get("period", query["slide"])
        often = f", answered every {span(period)}" if period != query["slide"] else ""
        if "empty_groups" in query:
            often += f", with empty groups for {span(query['empty_groups'])}"
        alike.setdefault((span(query["window"]), slide, often), []).append(query["name"])
    for (window, slide, often), names in alike.items():
        told = f"window {window}, slide {slide}{often}" if slide else window
        yield f"{told}: {_names(names, 'queries')}"


def _costs_text(group: Mapping[str, Any]) -> Iterator[str]:
    costs = {name: f"{cost:.4g}" for name, cost in group["costs"].items()}
    rivals = ", ".join(f"{name} {cost}" for name, cost in costs.items() if name != "chosen")
    yield f"{group['refresh']} costs {costs['chosen']} merges per pane; {rivals}"
    ways, pane = group["ways"], group["pane"]
    if len(ways) < 2:
        return
    yield "ways to shorten slides, by cost:"
    for way in ways[:_MOST_WAYS]:
        told = [f"{span(int(own) * pane)} to {span(taken * pane)}"
                for own, taken in way["periods"].items() if int(own) != taken]
        yield f"  {way['cost']:8.4g}  {', '.join(told) or 'none'}"
    if len(ways) > _MOST_WAYS:
        yield f"            and {len(ways) - _MOST_WAYS} that cost more"


def _view_text(view: Mapping[str, Any]) -> str:
    columns = ", ".join(f"{name} {type_}" for name, type_ in view["columns"].items())
    source = " with ".join([", ".join(view["streams"]), *view["relations"]])
    return f"{view['name']} ({columns}) over {source}: part of {_names(view['queries'], 'queries')}"


def _relation_text(relation: Mapping[str, Any]) -> str:
    return (f"{relation['name']}: read {relation['read']}; a change holds from the next block on, "
            f"for {_names(relation['queries'], 'queries')}")


def _queries_text(queries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Queries that deliver to the same place over the same paths, in one line."""
    groups: dict[tuple[str, str], list[str]] = {}
    for query in queries:
        into = ", ".join(_sink_text(Sink(**sink)) for sink in query["sinks"])
        groups.setdefault((into, _names(query["paths"], "paths")), []).append(query["name"])
    for (into, paths), names in groups.items():
        yield f"{_names(names, 'queries')} -> {into}, on {paths}"


def _sink_text(sink: Sink) -> str:
    return "the stream of its name" if sink.kind == "stream" else str(sink)


def _names(names: Iterable[str], what: str) -> str:
    """A list of names, shortened.

    >>> _names(["a", "b"], "queries"), _names(map(str, range(500)), "queries")
    ('a, b', '0, 1, 2, ... (500 queries in all)')
    """
    listed = list(names)
    if len(listed) <= _MOST_NAMES:
        return ", ".join(listed) or f"no {what}"
    return f"{', '.join(listed[:3])}, ... ({len(listed)} {what} in all)"
