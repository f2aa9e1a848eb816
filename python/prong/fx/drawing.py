"""Graphs as SVG: a box for each node, layers from top to bottom. Called by Graph.svg and GraphModule.draw."""

from xml.sax.saxutils import escape

CHARACTER, LINE, PADDING, GAP_X, GAP_Y = 6.7, 15, 8, 24, 34
FILLS = {
    "placeholder": "#e3f0fb",
    "output": "#e5f4e3",
    "get_attr": "#f7eed6",
    "call_module": "#f0e6f7",
}


class _Box:
    def __init__(self, node, lines):
        self.node, self.lines, self.x, self.y = node, lines, 0.0, 0.0
        self.width = max(map(len, lines)) * CHARACTER + 2 * PADDING
        self.height = len(lines) * LINE + PADDING


def _lines(node):
    from_line = node.meta.get("place")
    shape, dtype = node.meta.get("shape"), node.meta.get("dtype")
    lines = [
        node.name if node.op in ("placeholder", "output") else f"{node.name} = {_target(node)}"
    ]
    if shape is not None:
        lines.append(f"{str(dtype).rpartition('.')[2]} {list(shape)}")
    if from_line:
        lines.append(f"{from_line[0].rpartition('/')[2]}:{from_line[1]}")
    return lines


def _target(node):
    return node.target if isinstance(node.target, str) else node.target.__name__


def _layers(nodes):
    """Nodes by the length of the longest way from an input."""
    depth = {}
    for node in nodes:
        inputs = node.all_input_nodes
        depth[node] = 1 + max((depth[i] for i in inputs), default=-1)
    for node in nodes:  # what only waits for a late reader stands beside it
        if node.op in ("placeholder", "get_attr") and node.users:
            depth[node] = max(0, min(depth[user] for user in node.users) - 1)
    layers = {}
    for node in nodes:
        layers.setdefault(depth[node], []).append(node)
    return [layers[d] for d in sorted(layers)]


def _place(layers, boxes):
    """Puts each box near the middle of those it reads, from left to right without overlap."""
    top = GAP_Y / 2
    for layer in layers:
        wish = {}
        for i, node in enumerate(layer):
            above = [boxes[n] for n in node.all_input_nodes]
            middles = [box.x + box.width / 2 for box in above]
            wish[node] = sum(middles) / len(middles) if middles else i * 120.0
        left = GAP_X / 2
        for node in sorted(layer, key=wish.get):
            box = boxes[node]
            box.x, box.y = max(left, wish[node] - box.width / 2), top
            left = box.x + box.width + GAP_X
        top += max(boxes[node].height for node in layer) + GAP_Y
    return top


def _edge(start, end):
    x1, y1 = start.x + start.width / 2, start.y + start.height
    x2, y2 = end.x + end.width / 2, end.y
    bend = max(12.0, (y2 - y1) / 2)
    return (
        f'<path d="M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} {x2:.1f},{y2:.1f}" '
        'fill="none" stroke="#8a8a8a" marker-end="url(#tip)"/>'
    )


def _drawn(box):
    node = box.node
    tip = node.format_node()
    if node.stack_trace:
        tip += "\n" + node.stack_trace
    middle = box.x + box.width / 2
    text = "".join(
        f'<text x="{middle:.1f}" y="{box.y + PADDING / 2 + LINE * (i + 0.75):.1f}"'
        f"{'' if i == 0 else ' class=' + chr(34) + 'more' + chr(34)}>{escape(line)}</text>"
        for i, line in enumerate(box.lines)
    )
    return (
        f'<g><title>{escape(tip)}</title><rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="4" fill="{FILLS.get(node.op, "#f4f4f4")}" stroke="#555"/>{text}</g>'
    )


def draw(graph):
    """The SVG text of a graph."""
    nodes = list(graph.nodes)
    boxes = {node: _Box(node, _lines(node)) for node in nodes}
    height = _place(_layers(nodes), boxes) if nodes else GAP_Y
    width = max((box.x + box.width for box in boxes.values()), default=0) + GAP_X / 2
    edges = [_edge(boxes[i], boxes[node]) for node in nodes for i in node.all_input_nodes]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">',
            "<style>text{font:11px monospace;text-anchor:middle}.more{fill:#666}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#8a8a8a"/></marker></defs>',
            *edges,
            *map(_drawn, boxes.values()),
            "</svg>",
        ]
    )
