"""A small drawing of layered graphs as SVG: boxes in rows, arrows downwards, and back at the side, in the page's colours."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

BETWEEN, GAP, CHAR, PAD = 34, 26, 7.6, 12  # pixels: between rows, between boxes, of a letter, inside a box


@dataclass(eq=False)
class Node:
    """A box, or, without lines, the bend of a long arrow."""

    name: str
    lines: tuple[str, ...] = ()
    quiet: bool = False  # no frame: a call, not a thing
    rank: int = 0
    x: float = 0.0
    y: float = 0.0
    width: float = 12.0
    height: float = field(default=0.0)

    def __post_init__(self) -> None:
        """Make room for the text."""
        if self.lines:
            self.width = max(len(line) * (CHAR if row == 0 else 6.0) for row, line in enumerate(self.lines)) + 2 * PAD
            self.height = 14 + 17 * len(self.lines)


def reduced(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the edges of a graph without cycles that no longer way says already."""
    after: dict[str, set[str]] = {}
    for one, other in edges:
        after.setdefault(one, set()).add(other)

    def reach(name: str) -> set[str]:
        return {end for step in after.get(name, ()) for end in (step, *reach(step))}

    return {(a, b) for a, b in edges if not any(b in reach(step) for step in after[a] if step != b)}


def ranked(names: Iterable[str], edges: set[tuple[str, str]]) -> dict[str, int]:
    """Return the row of every name: below all that lead to it."""
    ranks = dict.fromkeys(names, 0)
    for _ in ranks:
        for one, other in edges:
            ranks[other] = max(ranks[other], ranks[one] + 1)
    return ranks


def placed(nodes: dict[str, Node], edges: set[tuple[str, str]]) -> tuple[list[list[Node]], list[list[Node]]]:
    """Put nodes into rows, and bend long arrows; return the rows, and every arrow as the nodes that it passes."""
    for name, rank in ranked(nodes, edges).items():
        nodes[name].rank = rank
    rows: list[list[Node]] = [[] for _ in range(1 + max(one.rank for one in nodes.values()))]
    for node in nodes.values():
        rows[node.rank].append(node)
    ways = []
    for one, other in sorted(edges):
        way = [nodes[one]]
        for rank in range(nodes[one].rank + 1, nodes[other].rank):
            rows[rank].append(bend := Node(f"{one}>{other}", rank=rank))
            way.append(bend)
        ways.append([*way, nodes[other]])
    links = [(a, b) for way in ways for a, b in itertools.pairwise(way)]
    for turn in range(12):
        order = rows if turn % 2 == 0 else rows[::-1]
        for row in order:
            spread(row)
            centre = {id(node): pulled(node, links, down=turn % 2 == 0) for node in row}
            row.sort(key=lambda node: centre[id(node)])
            spread(row)
    for _ in range(40):
        for row in rows:
            settle(row, links)
    return rows, ways


def settle(row: list[Node], links: list[tuple[Node, Node]]) -> None:
    """Move the nodes of a row towards the middle of all that they are linked to, in their order and without overlap."""
    for node in row:
        near = [a.x if b is node else b.x for a, b in links if node in (a, b)]
        node.x = 0.5 * (node.x + sum(near) / len(near)) if near else node.x
    apart = [(a.width + b.width) / 2 + GAP for a, b in itertools.pairwise(row)]
    rightwards, leftwards = [node.x for node in row], [node.x for node in row]
    for place, room in enumerate(apart):
        rightwards[place + 1] = max(rightwards[place + 1], rightwards[place] + room)
    for place, room in reversed(list(enumerate(apart))):
        leftwards[place] = min(leftwards[place], leftwards[place + 1] - room)
    for node, one, other in zip(row, rightwards, leftwards, strict=True):
        node.x = (one + other) / 2


def pulled(node: Node, links: list[tuple[Node, Node]], *, down: bool) -> float:
    """Return where a node would like to be: in the middle of those above it, or below."""
    near = [a.x if down else b.x for a, b in links if (b if down else a) is node]
    return sum(near) / len(near) if near else node.x


def spread(row: list[Node]) -> None:
    """Put the nodes of a row side by side, around 0."""
    total = sum(node.width for node in row) + GAP * (len(row) - 1)
    x = -total / 2
    for node in row:
        node.x = x + node.width / 2
        x += node.width + GAP


def svg(nodes: list[Node], edges: set[tuple[str, str]], back: set[tuple[str, str]] = frozenset(), *, title: str) -> str:
    """Return the picture; `back` are arrows that go up, drawn at the right side, dashed."""
    known = {node.name: node for node in nodes}
    rows, ways = placed(known, edges)
    left = min(node.x - node.width / 2 for row in rows for node in row) - 10
    right = max(node.x + node.width / 2 for row in rows for node in row) + (50 if back else 10)
    step = BETWEEN + max(node.height for node in nodes)
    for node in (node for row in rows for node in row):
        node.y = step * node.rank + step / 2
        node.height = node.height or 0.7 * (step - BETWEEN)  # arrows pass the boxes of a row in a straight line
    height = step * len(rows)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} 0 {right - left:.0f} {height:.0f}" role="img" '
        f'style="max-width:{right - left:.0f}px" font-family="sans-serif" fill="currentColor">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for way in ways:
        lines.append(f'<path d="{curve(way)}" fill="none" stroke="currentColor" opacity=".45" marker-end="url(#tip)"/>')
    for one, other in sorted(back):
        a, b = known[one], known[other]
        start, end = (a.x + a.width / 2, a.y), (b.x + b.width / 2 + 2, b.y)
        path = (
            f"M{start[0]:.0f} {start[1]:.0f}C{right:.0f} {start[1]:.0f} {right:.0f} {end[1]:.0f} {end[0]:.0f} {end[1]:.0f}"
        )
        lines.append(f'<path d="{path}" fill="none" stroke="#c2571a" stroke-dasharray="5 4" marker-end="url(#tip)"/>')
    lines += [drawn(node) for node in nodes]
    return "\n".join([*lines, "</svg>"])


def curve(way: list[Node]) -> str:
    """Return the path from the lower side of the first node to the upper side of the last, through the bends."""
    points = [(way[0].x, way[0].y + way[0].height / 2)]
    points += [(node.x, node.y + side) for node in way[1:-1] for side in (-node.height / 2, node.height / 2)]
    points += [(way[-1].x, way[-1].y - way[-1].height / 2 - 2)]
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x, y), (u, v) in itertools.pairwise(points):
        path += f"C{x:.0f} {(y + v) / 2:.0f} {u:.0f} {(y + v) / 2:.0f} {u:.0f} {v:.0f}"
    return path


def drawn(node: Node) -> str:
    """Return a box with its text."""
    left, top = node.x - node.width / 2, node.y - node.height / 2
    frame = "" if node.quiet else 'stroke="#3b7dc4" stroke-width="1.3" '
    fill = 'fill="none"' if node.quiet else 'fill="#3b7dc4" fill-opacity=".12"'
    size = f'width="{node.width:.0f}" height="{node.height:.0f}"'
    text = [f'<rect x="{left:.0f}" y="{top:.0f}" {size} rx="7" {frame}{fill}/>']
    for row, line in enumerate(node.lines):
        style = 'font-size="13" font-weight="600"' if row == 0 and not node.quiet else 'font-size="11"'
        y = top + 20 + 17 * row
        text.append(f'<text x="{node.x:.0f}" y="{y:.0f}" text-anchor="middle" {style}>{escape(line)}</text>')
    return "".join(text)
