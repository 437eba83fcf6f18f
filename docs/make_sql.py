"""Writes the tables of views in docs/sql.md, between its two marks, from `history/sql_views.py`.

python docs/make_sql.py
"""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.history.sql_views import VERSION, VIEWS

PAGE = Path(__file__).with_name("sql.md")
BEGIN, END = "<!-- views: made by docs/make_sql.py -->\n", "<!-- end of views -->\n"


def page_text(page: str) -> str:
    """The page with its tables made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    parts = [f"These are version {VERSION} of the views.\n"]
    for view in VIEWS:
        rows = "".join(f"| `{column.name}` | {column.about} |\n" for column in view.columns)
        parts.append(f"### {view.name}\n\n{view.about}\n\n| column | |\n|---|---|\n{rows}")
    made = "\n".join(parts)
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_text(PAGE.read_text("utf-8")), "utf-8")
