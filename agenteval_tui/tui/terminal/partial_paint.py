"""A repaint asks widgets only for the rows that changed.

Textual asks every widget within the rectangle around all changes for all of its rows, also where one letter changed,
and behind other widgets: after a key in an editor that is most of what the key costs.

With a Textual whose private parts are not known (`textual_support.py`) Textual paints in its own way.
"""

from __future__ import annotations

from functools import wraps

from textual.geometry import Region

from agenteval_tui.tui.terminal.textual_support import is_known

try:
    from textual._compositor import ChopsUpdate, Compositor
    from textual.strip import Strip
except ImportError:  # another Textual than `IS_KNOWN` asks for
    Compositor = object  # type: ignore[assignment, misc]

# What is replaced or relied on, with the first digits of the SHA-256 of its source.
STANDS_ON: dict[str, str] = {
    "textual._compositor:ChopsUpdate.__init__": "f40588bd8fbd",
    "textual._compositor:ChopsUpdate.__rich_console__": "c45d5804ef81",
    "textual._compositor:ChopsUpdate.render_segments": "4c1cdb567e0b",
    "textual._compositor:Compositor._get_renders": "8ac93299aa5d",
    "textual._compositor:Compositor._regions_to_spans": "af3b73d8e34f",
    "textual._compositor:Compositor._render_chops": "ca8c3359d7af",
    "textual._compositor:Compositor.cuts.fget": "205385a66fda",
    "textual._compositor:Compositor.render_partial_update": "888dccc892d8",
    "textual._compositor:Compositor.visible_widgets.fget": "6eddec5f2716",
    "textual.widget:Widget.render_lines": "1f2a11f3d518",
}
IS_KNOWN = is_known(STANDS_ON, {"textual._compositor:Compositor.render_partial_update": "_dirty_regions size"})
if IS_KNOWN:
    PAINT_OF_TEXTUAL = Compositor.render_partial_update


def paint_changes(compositor: Compositor) -> ChopsUpdate | None:
    """As `render_partial_update`, with the rows that are seen of what changed, and no others."""
    regions = compositor._dirty_regions.copy()
    compositor._dirty_regions.clear()
    if not regions:
        return None
    height = compositor.size.height
    spans = [span for span in compositor._regions_to_spans(regions) if 0 <= span[0] < height]
    cuts = compositor.cuts
    ends = [cut[1:] for cut in cuts]
    chops: list[dict[int, Strip | None]] = [{} for _ in cuts]
    missing: dict[int, set[int]] = {}
    """By row: where the pieces begin that are to be painted, and that nothing was painted at yet."""
    for y, first, last in spans:
        if y not in missing:
            chops[y] = dict.fromkeys(cuts[y][:-1])
            missing[y] = set()
        missing[y].update(x for x, end in zip(chops[y], ends[y], strict=True) if x < last and end > first)
    # In front are the first.
    for widget, (region, clip) in compositor.visible_widgets.items():
        seen = region.intersection(clip)
        left, right = seen.column_span
        rows = [y for y in seen.line_range if y in missing and any(left <= x < right for x in missing[y])]
        if not rows:
            continue
        top, bottom = rows[0], rows[-1] + 1
        strips = widget.render_lines(Region(seen.x - region.x, top - region.y, seen.width, bottom - top))
        for y in rows:
            wanted = missing[y]
            within = [cut for cut in cuts[y] if left <= cut <= right]
            for x, strip in zip(within, strips[y - top].divide([cut - left for cut in within[1:]]), strict=False):
                if x in wanted:
                    chops[y][x] = strip
                    wanted.discard(x)
    return ChopsUpdate(chops, spans, ends)


def paint_only_changes() -> None:
    """Let screens be repainted so from now on."""
    if IS_KNOWN:
        # Wrapped: who reads its source finds Textual's.
        Compositor.render_partial_update = wraps(PAINT_OF_TEXTUAL)(paint_changes)  # type: ignore[method-assign, assignment]
