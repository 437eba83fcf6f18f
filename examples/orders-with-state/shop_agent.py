"""The agent: it cancels an order and sends a mail, or claims to."""

import re
import sqlite3
from pathlib import Path


def answer(prompt, config):
    order = re.search(r"W\d+", prompt).group()
    if not config.get("only_claims"):
        with sqlite3.connect("shop.db") as database:
            database.execute("update orders set status = 'cancelled' where id = ?", (order,))
        Path("mails", f"{order}.txt").write_text(f"Your order {order} is cancelled.\n")
    return f"Order {order} is cancelled. You will get a mail."
