"""Charts as HTML: the numbers in a table, and the space in which the script draws them.

The law: pure; everything that a chart shows is also in the table as a number.
"""

from __future__ import annotations

from markupsafe import Markup

from sidecar.admin.page.history import EVERY, KEPT, Chart, History
from sidecar.admin.page.markup import html, joined


def format_number(number: float) -> str:
    """The same format as in the script: `12,345`, `12.3`, `0.012`, `0`."""
    if number == 0:
        return "0"
    digits = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2 if abs(number) >= 1 else 3  # noqa: PLR2004
    return f"{number:,.{digits}f}"


def format_charts(history: History) -> Markup:
    """All charts of a history, with the data that the script needs to continue them."""
    samples = ";".join(",".join(f"{number:g}" for number in row) for row in history.since(0))
    return html(
        '<div class="charts" data-samples="{samples}" data-number="{number}" data-every="{every}" data-kept="{kept}">'
        "{charts}</div>\n",
        samples=samples,
        number=history.number,
        every=f"{EVERY:g}",
        kept=KEPT,
        charts=joined(_format_chart(chart, history) for chart in history.charts),
    )


def _format_chart(chart: Chart, history: History) -> Markup:
    rows = joined(
        html(
            '<tr><th scope="row"><span class="swatch s{number}"></span>{name}</th>'
            '<td data-now="{key}">{now}</td><td data-mean="{key}">{mean}</td><td data-most="{key}">{most}</td></tr>',
            number=number,
            name=line.name,
            key=line.key,
            **_figures(history.line(line.key)),
        )
        for number, line in enumerate(chart.lines, 1)
    )
    return html(
        '<figure data-chart="{key}" data-unit="{unit}" data-lines="{lines}"><figcaption id="{key}-chart">{title} '
        '<span class="unit">{unit}</span></figcaption><div class="plot"></div>'
        '<table aria-labelledby="{key}-chart"><thead><tr><td></td><th scope="col">now</th><th scope="col">mean</th>'
        '<th scope="col">most</th></tr></thead><tbody>{rows}</tbody></table></figure>',
        key=chart.key,
        unit=chart.unit,
        lines=" ".join(line.key for line in chart.lines),
        title=chart.title,
        rows=rows,
    )


def _figures(values: list[float]) -> dict[str, str]:
    if not values:
        return {"now": "-", "mean": "-", "most": "-"}
    numbers = {"now": values[-1], "mean": sum(values) / len(values), "most": max(values)}
    return {name: format_number(number) for name, number in numbers.items()}
