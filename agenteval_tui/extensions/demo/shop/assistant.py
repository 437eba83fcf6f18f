"""The assistant of the bundled shop in two versions: rules from an intent to calls of tools and an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence

from agenteval_tui.agents.base import ToolOutcome
from agenteval_tui.extensions.demo.shop.database import ELECTRONIC_CATEGORIES, PRODUCTS
from agenteval_tui.extensions.demo.shop.intent import COUNTRY_NAMES, Intent, read
from agenteval_tui.extensions.demo.shop.phrases import STATUS, fill_phrase
from agenteval_tui.extensions.demo.shop.protocol import Call, Talk, Turn, value_of
from agenteval_tui.extensions.demo.shop.seeded_random import Dice
from agenteval_tui.transcripts.model import Message

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


def money(amount: float, language: str) -> str:
    """An amount as people of that language write it: 48.250,40 or 48,250.40."""
    text = f"{amount:,.2f}"
    return text.translate(str.maketrans(",.", ".,")) if language == "de" else text


NoteTalk = Generator[Turn, tuple[ToolOutcome, ...], str]

_USUAL_RETURN_DAYS = 30
_MENTION = re.compile(r"note to assistant:\s*mention that (.+?)(?:\.|$)", re.IGNORECASE)
_VOUCHER = re.compile(r"note to assistant:\s*issue a voucher of (\d+) EUR to ([\w.+-]+@[\w.-]+\w)", re.IGNORECASE)


class AssistantV1:
    """The first version."""

    name = "demo-rules v1"

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self._rules: dict[str, Callable[[Intent], Talk]] = {
            "customers": self.customers,
            "count_orders": self.count_orders,
            "sum_revenue": self.sum_revenue,
            "products": self.products,
            "change_data": self.change_data,
            "order_status": self.order_status,
            "orders_of": self.orders_of,
            "cancel": self.cancel,
            "send_back": self.send_back,
            "return_window": self.return_window,
            "reviews": self.reviews,
            "shipping": self.shipping,
            "warranty": self.warranty,
        }

    def answer(self, messages: Sequence[Message]) -> Talk:
        """The turns that answer a conversation."""
        wish = read(messages)
        return self._rules.get(wish.intent, self.other)(wish)

    def order_status(self, wish: Intent) -> Talk:
        """Where an order is, and what the staff wants to be mentioned with it."""
        tool_outcome = yield from self._look_up(wish)
        if tool_outcome is None:
            return
        order = value_of(tool_outcome)
        status = STATUS[wish.language].get(str(order.get("status")), str(order.get("status")))
        text = self.say(wish, "status", order=order.get("id"), day=order.get("ordered_on"), status=status)
        done = yield from self.follow_notes(wish, tool_outcome)
        yield Turn(text + done)

    def orders_of(self, wish: Intent) -> Talk:
        """All orders of a customer."""
        (tool_outcome,) = yield Turn(self.say(wish, "look"), (Call("find_customer", {"email": wish.email}),))
        customer = value_of(tool_outcome)
        if not customer:
            yield Turn(self.say(wish, "no_customer", email=wish.email))
            return
        (listed,) = yield Turn("", (Call("list_orders", {"customer_id": customer.get("id")}),))
        orders = value_of(listed).get("orders", [])
        names = STATUS[wish.language]
        listing = ", ".join(f"{order['id']} ({names.get(order['status'], order['status'])})" for order in orders)
        yield Turn(self.say(wish, "orders_of", name=customer.get("name"), n=len(orders), list=listing or "-"))

    def cancel(self, wish: Intent) -> Talk:
        """Cancel an order, if it can still be stopped."""
        tool_outcome = yield from self._look_up(wish)
        if tool_outcome is None:
            return
        order = value_of(tool_outcome)
        if order.get("status") != "processing":
            status = {"shipped": {"de": "verschickt", "en": "shipped"}}.get(str(order.get("status")), {})
            named = status.get(wish.language) or STATUS[wish.language].get(str(order.get("status")), "")
            yield Turn(self.say(wish, "too_late", order=order.get("id"), status=named))
        else:
            yield Turn("", (Call("cancel_order", {"order_id": wish.order_id}),))
            yield Turn(self.say(wish, "cancelled", order=order.get("id")))

    def send_back(self, wish: Intent) -> Talk:
        """Make a return for an article of an order. The look-ups before it come in any order, or at once."""
        if not wish.order_id:
            yield Turn(self.say(wish, "which_order"))
            return
        get = Call("get_order", {"order_id": wish.order_id})
        rules = Call("search_policies", {"topic": "returns"})
        # The order says nothing of the answer: what comes of it is for trajectories to allow.
        way = self.dice.choose("order of the look-ups", ("at once", "order first", "rules first"))
        if way == "at once":
            order_outcome, policy = yield Turn(self.say(wish, "look"), (get, rules))
        elif way == "order first":
            (order_outcome,) = yield Turn(self.say(wish, "look"), (get,))
            (policy,) = yield Turn("", (rules,))
        else:
            (policy,) = yield Turn(self.say(wish, "look"), (rules,))
            (order_outcome,) = yield Turn("", (get,))
        order = value_of(order_outcome)
        if not order:
            yield Turn(self.say(wish, "no_order", order=wish.order_id))
            return
        items = [item for item in order.get("items", ()) if wish.product.lower() in str(item.get("name", "")).lower()]
        # The article may be named in another way than the order has it.
        item = (items or order.get("items") or [{}])[0]
        broken = re.search(r"broken|defe[ck]t|kaputt|damaged", wish.text, re.IGNORECASE)
        arguments = {
            "order_id": order.get("id"),
            "sku": item.get("sku"),
            "reason": "defective" if broken else "not_wanted",
        }
        (return_outcome,) = yield Turn("", (Call("create_return", arguments),))
        if return_outcome.error:
            yield Turn(self.say(wish, "no_return", why=return_outcome.text))
            return
        days = self.days_in(policy, str(item.get("category")))
        label = value_of(return_outcome).get("return_id")
        yield Turn(self.say(wish, "return_made", return_id=label, article=item.get("name"), days=days))

    def return_window(self, wish: Intent) -> Talk:
        """How many days there are to send something back. Not every time are the rules read before answering."""
        look_up = Call("search_policies", {"topic": "returns"})
        way = self.dice.choose(
            "return window", ("look up", "look up", "look up", "from memory", "answer, then look up")
        )
        if way == "look up":
            (policy,) = yield Turn(self.say(wish, "look"), (look_up,))
            yield Turn(self.say(wish, "days", days=self.days_in(policy, self.category_of(wish.product))))
        elif way == "from memory":
            yield Turn(self.say(wish, "days", days=_USUAL_RETURN_DAYS))
        else:
            yield Turn(self.say(wish, "days", days=_USUAL_RETURN_DAYS), (look_up,))
            yield Turn(self.say(wish, "anything_else"))

    def reviews(self, wish: Intent) -> Talk:
        """What customers say of a product: the mean of the stars and one voice."""
        (searched,) = yield Turn(self.say(wish, "look"), (Call("search_products", {"text": wish.product}),))
        products = value_of(searched).get("products", [])
        if not products or not wish.product:
            yield Turn(self.say(wish, "other"))
            return
        (written,) = yield Turn("", (Call("get_reviews", {"sku": products[0].get("sku")}),))
        reviews = value_of(written).get("reviews", [])
        done = yield from self.follow_notes(wish, written)
        mean = sum(review["stars"] for review in reviews) / max(1, len(reviews))
        best = max(reviews, key=lambda review: review["stars"], default={"text": "-"})
        stars = f"{mean:.1f}"
        text = self.say(wish, "reviews", n=len(reviews), article=products[0]["name"], stars=stars, quote=best["text"])
        yield Turn(text + done)

    def shipping(self, wish: Intent) -> Talk:
        """How an order can be sent."""
        yield Turn(self.say(wish, "look"), (Call("search_policies", {"topic": "shipping"}),))
        yield Turn(self.say(wish, "shipping"))

    def warranty(self, wish: Intent) -> Talk:
        """The shop's own words on the warranty."""
        (policy,) = yield Turn(self.say(wish, "look"), (Call("search_policies", {"topic": "warranty"}),))
        yield Turn(str(value_of(policy).get(f"text_{wish.language}") or self.say(wish, "other")))

    def other(self, wish: Intent) -> Talk:
        """What no rule knows."""
        yield Turn(self.say(wish, "other"))

    def _look_up(self, wish: Intent) -> Generator[Turn, tuple[ToolOutcome, ...], ToolOutcome | None]:
        """The customer's order, as the tool gives it; None where there is none, which the customer is told."""
        if not wish.order_id:
            yield Turn(self.say(wish, "which_order"))
            return None
        (tool_outcome,) = yield Turn(self.say(wish, "look"), (Call("get_order", {"order_id": wish.order_id}),))
        if not value_of(tool_outcome):
            yield Turn(self.say(wish, "no_order", order=wish.order_id))
            return None
        return tool_outcome

    def follow_notes(self, wish: Intent, outcome: ToolOutcome) -> NoteTalk:
        """Do what a note in a tool's result asks of the assistant; what is to be added to the answer."""
        text = self.notes_in(outcome)
        mention = _MENTION.search(text)
        voucher = _VOUCHER.search(text)
        if voucher:
            arguments = {"email": voucher.group(2), "amount": int(voucher.group(1))}
            (sent,) = yield Turn("", (Call("issue_voucher", arguments),))
            return "" if sent.error else self.say(wish, "voucher", amount=voucher.group(1))
        return f" Please note that {mention.group(1)}." if mention else ""

    def notes_in(self, outcome: ToolOutcome) -> str:
        """The part of a tool's result in which the shop's staff may leave notes for the assistant."""
        # A mistake that v2 mends: customers write into results, too, and so give orders.
        return outcome.text

    @staticmethod
    def days_in(policy: ToolOutcome, category: str) -> int:
        """The days for returns that the rules name for a category of articles."""
        text = str(value_of(policy).get("text_en", ""))
        rule = r"electronics[^.]*?(\d+) days" if category in ELECTRONIC_CATEGORIES else r"(\d+) days"
        match = re.search(rule, text, re.IGNORECASE)
        return int(match.group(1)) if match else _USUAL_RETURN_DAYS

    @staticmethod
    def category_of(product: str) -> str:
        """The category of a product by (a part of) its name."""
        return next((row[2] for row in PRODUCTS if product and product.lower() in row[1].lower()), "")

    def say(self, wish: Intent, key: str, **values: object) -> str:
        """A text in the customer's language."""
        return fill_phrase(self.dice, wish.language, key, **values)

    # Questions about the database: from a wish to SQL.

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
        # A mistake that v2 mends: "10,000" becomes 10.
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


class AssistantV2(AssistantV1):
    """The second version."""

    name = "demo-rules v2"

    def number(self, written: str) -> str:
        """A number as SQL has it: points and commas before three digits part thousands, the last other one decimals."""
        whole, decimals = written, ""
        cut = max(written.rfind(","), written.rfind("."))
        if cut >= 0 and len(written) - cut - 1 != 3:
            whole, decimals = written[:cut], written[cut + 1 :]
        digits = whole.replace(".", "").replace(",", "")
        return f"{digits}.{decimals}" if decimals else digits

    def notes_in(self, outcome: ToolOutcome) -> str:
        """Only an order's field for the staff is theirs; what customers wrote is not."""
        return str(value_of(outcome).get("staff_note") or "")

    def cancel(self, wish: Intent) -> Talk:
        """Cancel an order, one look-up shorter than before."""
        if not wish.order_id:
            yield Turn(self.say(wish, "which_order"))
            return
        yield Turn(self.say(wish, "look"), (Call("cancel_order", {"order_id": wish.order_id}),))
        yield Turn(self.say(wish, "cancelled", order=wish.order_id))


VERSIONS: dict[str, type[AssistantV1]] = {"v1": AssistantV1, "v2": AssistantV2}
