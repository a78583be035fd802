"""The roofline: a step as a point under the lines that the machine's peaks draw.

After S. Williams, A. Waterman and D. Patterson, Roofline: An Insightful Visual Performance Model (2009).
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.render import numbers
from bench.render.charts import vega
from bench.render.charts.vega import DOT, HEIGHT, LEGEND, MUTED, PLAIN, TEXT_BESIDE, layer, number, word


def draw(intensity: float, attained: float, memories: Sequence[tuple[str, float]], compute: float) -> str:
    """Draw FLOP/s over FLOP per byte, on two logarithmic axes.

    Args:
        intensity: FLOP per byte of the step.
        attained: FLOP/s of the step.
        memories: label and peak in bytes/s of each memory.
        compute: peak in FLOP/s.
    """
    knees = [compute / bandwidth for _, bandwidth in memories]
    low, high = min([intensity, *knees]) / 8, max([intensity, *knees]) * 8
    lines = [
        {"label": label, "x": x, "y": min(compute, x * bandwidth)}
        for label, bandwidth in memories
        for x in (low, compute / bandwidth, high)
    ]
    ys: list[float] = [attained, *(min(compute, x * bandwidth) for _, bandwidth in memories for x in (low, high))]
    rates = "replace(format(datum.value, '~s'), regexp('([a-zA-Z]*)$'), ' $1FLOP/s')"
    x_axis = {"title": "FLOP per byte", "values": vega.decades(low, high), "labelExpr": PLAIN}
    least, most = min(ys) / 1.5, max(ys) * 2
    y_axis = {"title": None, "values": vega.decades(least, most), "labelExpr": rates, "labelLimit": 0}
    x = number("x", scale=vega.logarithmic(low, high), axis=x_axis)
    y = number("y", scale=vega.logarithmic(least, most), axis=y_axis)
    labels = [label for label, _ in memories]
    scale = {"domain": labels, "range": [[1, 0], [6, 4]][: len(labels)]}
    dash = word("label", scale=scale, legend={**LEGEND, "symbolStrokeColor": MUTED})
    point = [{"x": intensity, "y": attained, "text": numbers.quantity(attained, "FLOP/s")}]
    layers = [
        layer("lines", "line", {"color": MUTED, "strokeWidth": 2}, x=x, y=y, strokeDash=dash),
        layer("step", "point", {**DOT, "size": 90}, x=x, y=y),
        layer("step", "text", {**TEXT_BESIDE, "dx": 10, "dy": 4}, x=x, y=y, text=word("text")),
    ]
    return vega.svg(layers, {"lines": lines, "step": point}, 1, HEIGHT)
