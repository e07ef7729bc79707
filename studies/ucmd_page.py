"""The tables of docs/ucmd.md: `ucmd` beside its rivals, and what each of its parts costs and buys."""

from tables import Found, apart, heads_of, made_by, milliseconds, rows, sorted_out, standing, told_from

from rmab.report.statistics import Paired

FIRST = "ucmd"


def beside(found: Found) -> str:
    """Return tasks by learners: regret in per cent of the chance gap; what was earned where regrets cannot be compared."""
    cells, learners = found.cells, found.summary.learners
    still, answers = sorted_out((task for task, _ in cells), cells)
    parts = []
    for tasks, what in ((still, "regret to O1, % of random"), (answers, "earned")):
        told = told_from({key: cell for key, cell in cells.items() if key[0] in tasks}, FIRST)
        lines = [
            [task, *(standing(cells.get((task, one)), "O1", told.get((task, one))) for one in learners)] for task in tasks
        ]
        parts.append(rows([what, *(f"`{one}`" if "," not in one else one for one in learners)], lines, 1))
    return "\n".join([*parts, made_by(found)])


def exchanged(found: Found) -> str:
    """Return what each part costs and buys where it can be told: points of the chance gap, or per cent of what is earned."""
    cells, learners = found.cells, found.summary.learners
    base = learners[0]
    told, lines = told_from(cells, base), []
    for label in learners[1:]:
        pairs = [(task, told[task, label]) for task, one in cells if one == label and (task, label) in told]
        costs = [said(found, task, pair) for task, pair in pairs if pair.is_significant and pair.difference.mean < 0]
        buys = [said(found, task, pair) for task, pair in pairs if pair.is_significant and pair.difference.mean > 0]
        mine = [cell for (_, one), cell in cells.items() if one == label]
        if pairs:
            lines.append([label, "; ".join(costs) or "nothing", "; ".join(buys) or "nothing", milliseconds(mine)])
    head = ["switched off or exchanged", "what it costs", "what it buys", "ms / episode"]
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
