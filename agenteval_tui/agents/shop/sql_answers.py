"""Version 1's rules for questions about the database: from a wish to SQL."""

from __future__ import annotations

from agenteval_tui.agents.base import ToolOutcome
from agenteval_tui.agents.shop.intent import COUNTRY_NAMES, Intent
from agenteval_tui.agents.shop.phrases import fill_phrase
from agenteval_tui.agents.shop.protocol import Call, Talk, Turn, value_of
from agenteval_tui.agents.shop.seeded_random import Dice

_MONTH_NAMES = {
    "de": [
        *("Januar", "Februar", "März", "April", "Mai", "Juni"),
        *("Juli", "August", "September", "Oktober", "November", "Dezember"),
    ],
    "en": [
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ],
}


class SqlAnswers:
    """Answers that come out of the tables. A part of the assistant."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice

    def say(self, wish: Intent, key: str, **values: object) -> str:
        """A text in the customer's language."""
        return fill_phrase(self.dice, wish.language, key, **values)

    def customers(self, wish: Intent) -> Talk:
        """Customers by country and revenue, as SQL; sometimes after a look at the table, sometimes tried out."""
        country = wish.country
        if self.dice.chance("look at the table first", 0.6):
            (tool_outcome,) = yield Turn(self.say(wish, "schema"), (Call("describe_table", {"table": "customers"}),))
            country = self.country_as_stored(country, tool_outcome)
        conditions = [f"country = '{country}'"] if country else []
        if wish.amount:
            conditions.append(f"revenue > {self.number(wish.amount)}")
        where = "\nWHERE " + "\n  AND ".join(conditions) if conditions else ""
        sql = f"SELECT name, city, revenue\nFROM customers{where}\nORDER BY revenue DESC;"
        tried = ""
        if self.dice.chance("try the query", 0.5):
            (result,) = yield Turn("", (Call("query", {"sql": sql}),))
            tried = self.say(wish, "tried", rows=len(value_of(result).get("rows", ())))
        yield Turn(self.say(wish, "sql", sql=sql) + tried)

    def country_as_stored(self, code: str, tool_outcome: ToolOutcome) -> str:
        """The country in the spelling of the table's own values."""
        for column in value_of(tool_outcome).get("columns", ()):
            if column.get("name") == "country" and COUNTRY_NAMES.get(code) in column.get("samples", ()):
                return COUNTRY_NAMES[code]
        return code

    def number(self, written: str) -> str:
        """A number as SQL has it, from how the customer wrote it."""
        return written.replace(",", ".")

    def count_orders(self, wish: Intent) -> Talk:
        """How many orders a month had."""
        if wish.month is None:
            yield Turn(self.say(wish, "other"))
            return
        year, month = wish.month
        after = f"{year + month // 12}-{month % 12 + 1:02d}-01"
        sql = f"SELECT COUNT(*) AS n FROM orders WHERE ordered_on >= '{year}-{month:02d}-01' AND ordered_on < '{after}'"  # noqa: S608
        (result,) = yield Turn(self.say(wish, "look"), (Call("query", {"sql": sql}),))
        rows = value_of(result).get("rows") or [[0]]
        named = f"{_MONTH_NAMES[wish.language][month - 1]} {year}"
        yield Turn(self.say(wish, "count", n=rows[0][0], month=named))

    def sum_revenue(self, wish: Intent) -> Talk:
        """The revenue of all customers, or of a country's."""
        where = ""
        if wish.country:
            (tool_outcome,) = yield Turn(self.say(wish, "schema"), (Call("describe_table", {"table": "customers"}),))
            where = f" WHERE country = '{self.country_as_stored(wish.country, tool_outcome)}'"
        sql = f"SELECT SUM(revenue) FROM customers{where}"  # noqa: S608
        (result,) = yield Turn(self.say(wish, "look"), (Call("query", {"sql": sql}),))
        rows = value_of(result).get("rows") or [[0]]
        yield Turn(self.say(wish, "sum", amount=money(float(rows[0][0] or 0), wish.language)))

    def products(self, wish: Intent) -> Talk:
        """Products of a category: as SQL when SQL is asked for, else as a list."""
        conditions = [f"category = '{wish.category}'"] if wish.category else []
        if wish.amount:
            conditions.append(f"price < {self.number(wish.amount)}")
        where = "\nWHERE " + "\n  AND ".join(conditions) if conditions else ""
        sql = f"SELECT name, price\nFROM products{where}\nORDER BY price;"
        if "sql" in wish.text.lower():
            if self.dice.chance("look at the table first", 0.6):
                yield Turn(self.say(wish, "schema"), (Call("describe_table", {"table": "products"}),))
            yield Turn(self.say(wish, "sql", sql=sql))
            return
        (result,) = yield Turn(self.say(wish, "look"), (Call("query", {"sql": sql}),))
        lines = [
            f"- {name}: {money(float(price), wish.language)} EUR" for name, price in value_of(result).get("rows", ())
        ]
        yield Turn(self.say(wish, "products", list="\n".join(lines) or "-"))

    def change_data(self, wish: Intent) -> Talk:
        """What would change the database is refused."""
        yield Turn(self.say(wish, "read_only"))


def money(amount: float, language: str) -> str:
    """An amount as people of that language write it: 48.250,40 or 48,250.40."""
    text = f"{amount:,.2f}"
    return text.translate(str.maketrans(",.", ".,")) if language == "de" else text
