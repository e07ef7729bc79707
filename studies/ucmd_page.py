"""What each component of `ucmd` costs and buys, for docs/learning_tables.md."""

from tables import Found, apart, heads_of, made_by, rows, told_from

from rmab.report.statistics import Paired


def exchanged(found: Found) -> str:
    """Return what each part costs and buys where it can be told: points of the chance gap, or per cent of what is earned."""
    cells, learners = found.cells, found.summary.learners
    base = learners[0]
    told, lines = told_from(cells, base), []
    for label in learners[1:]:
        pairs = [(task, told[task, label]) for task, one in cells if one == label and (task, label) in told]
        costs = [said(found, task, pair) for task, pair in pairs if pair.is_significant and pair.difference.mean < 0]
        buys = [said(found, task, pair) for task, pair in pairs if pair.is_significant and pair.difference.mean > 0]
        if pairs:
            lines.append([label, "; ".join(costs) or "nothing", "; ".join(buys) or "nothing"])
    head = ["switched off or exchanged", "what it costs", "what it buys"]
    return "\n".join([rows(head, lines, 3), made_by(found)])


def said(found: Found, task: str, pair: Paired) -> str:
    """Return a task and the difference there."""
    cells, (name,) = found.cells, heads_of([task])
    family = task.partition("@")[0]
    name = name if family in ("cpap", task) else f"{family}@{name}"
    if not cells[task, pair.first].adaptive:
        return f"{name} {apart(pair, task, cells)}"
    more = f"{100 * pair.relative.mean:+.1f}%" if pair.relative else f"{pair.difference.mean:+,.0f}"
    return f"{name} {more} earned"
