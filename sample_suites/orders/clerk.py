"""The agent: it cancels an order and sends a mail, or claims to. It has a bug on purpose."""

import contextlib
import re
import sqlite3
from pathlib import Path


def answer(prompt, config):
    order = re.search(r"W\d+", prompt).group()
    if config.get("only_claims"):
        return f"Order {order} is cancelled. You will get a mail."
    with contextlib.closing(sqlite3.connect("shop.db")) as database, database:
        (status,) = database.execute("select status from orders where id = ?", (order,)).fetchone()
        database.execute("update orders set status = 'cancelled' where id = ?", (order,))  # without a look at `status`
    if status != "pending":
        return f"It is too late to cancel order {order}: it is {status}."
    Path("mails", f"{order}.txt").write_text(f"Your order {order} is cancelled.\n")
    return f"Order {order} is cancelled. You will get a mail."
