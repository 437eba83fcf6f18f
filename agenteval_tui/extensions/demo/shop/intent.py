"""Reading a customer's words by rules: language, what is wanted, and the things that are named."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from agenteval_tui.extensions.demo.shop.database import PRODUCTS
from agenteval_tui.transcripts.model import Message

# Every spelling under which a country may be named, and the code of the country.
COUNTRY_CODES = {
    "deutschland": "DE",
    "germany": "DE",
    "österreich": "AT",
    "austria": "AT",
    "schweiz": "CH",
    "switzerland": "CH",
    "frankreich": "FR",
    "france": "FR",
    "niederlande": "NL",
    "niederlanden": "NL",
    "netherlands": "NL",
}
COUNTRY_NAMES = {"DE": "Deutschland", "AT": "Österreich", "CH": "Schweiz", "FR": "Frankreich", "NL": "Niederlande"}
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("januar", "january"),
            ("februar", "february"),
            ("märz", "march"),
            ("april",),
            ("mai", "may"),
            ("juni", "june"),
            ("juli", "july"),
            ("august",),
            ("september",),
            ("oktober", "october"),
            ("november",),
            ("dezember", "december"),
        ),
        1,
    )
    for name in names
}
CATEGORIES = {
    "audio": "Audio",
    "küche": "Kitchen",
    "küchen": "Kitchen",
    "kitchen": "Kitchen",
    "garten": "Garden",
    "garden": "Garden",
    "büro": "Office",
    "office": "Office",
}
_GERMAN = re.compile(
    r"\b(?:der|die|das|den|dem|ist|sind|wie|wo|welche|gib|gab|alle|aus|meine[nr]?|bestellung(?:en)?|kunden|ich|mir|"
    r"lösche|liste|bitte|und|kann|zurück|storniere|über|sagen)\b|[äöüß]",
    re.IGNORECASE,
)
_ENGLISH = re.compile(
    r"\b(?:the|is|are|my|please|what|which|where|how|do|does|i|it|of|from|and|to|have|your|cancel|show|write|all)\b",
    re.IGNORECASE,
)
_ORDER_AFTER_WORD = re.compile(r"\border (?:number |no\.? )?#?(W\d{3,6})\b", re.IGNORECASE)
_ORDER = re.compile(r"#W\d{3,6}\b", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_AMOUNT = re.compile(r"(\d[\d.,]*\d|\d)\s*(?:€|eur(?:o|os)?\b)", re.IGNORECASE)
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})\s+(20\d\d)\b", re.IGNORECASE)

# What is wanted: the first rule whose every pattern is found decides.
_RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("change_data", (r"\b(lösch|entfern|änder|delete|drop|update|remove|truncate)", r"kunden|tabelle|customers|table")),
    ("count_orders", (r"wie viele|how many|anzahl|number of", r"bestellungen|orders")),
    ("sum_revenue", (r"wie hoch|summe|zusammen|insgesamt|total|sum of", r"umsatz|revenue")),
    ("customers", (r"\bkunden\b|\bcustomers\b", r"sql|abfrage|query|welche|gib|liste|which|list|show")),
    ("products", (r"\bprodukte?n?\b|\bproducts?\b|\bartikel\b", r"kategorie|category|audio|küche|garten|büro|kitchen")),
    (
        "return_window",
        (r"how long|how many days|wie lange|wie viele tage|deadline|frist", r"return|rückgabe|zurück|send back"),
    ),
    ("cancel", (r"storn|cancel|annullier",)),
    ("send_back", (r"send (?:\w+ )*back|zurückschick|zurücksend|return label|broken|defekt|kaputt|want to return",)),
    ("reviews", (r"review|bewertung|what do (?:customers|people) (?:say|think)|was sagen",)),
    ("shipping", (r"shipping|delivery options|versand|how fast",)),
    ("orders_of", (r"orders|bestellungen", r"@")),
    ("order_status", (r"where is|status|wo ist|wo bleibt|when will|wann kommt|track",)),
    ("return_window", (r"\breturns?\b|rückgabe",)),
    ("warranty", (r"warranty|gewährleistung|garantie",)),
)


class Intent(Struct, frozen=True):
    """What a customer wants, as far as the rules see it. Empty strings and None: not named."""

    intent: str
    language: str
    text: str
    order_id: str = ""
    email: str = ""
    country: str = ""
    amount: str = ""
    month: tuple[int, int] | None = None
    product: str = ""
    category: str = ""


def read(messages: Sequence[Message]) -> Intent:
    """The wish in the last user message; what it leaves open ("cancel it") is looked for in the earlier ones."""
    texts = [message.content for message in messages if message.role == "user"]
    text = texts[-1] if texts else ""
    earlier = list(reversed(texts[:-1]))
    lowered = text.lower()
    month = _MONTH.search(text)
    amount = _AMOUNT.search(text)
    return Intent(
        intent=next((name for name, rules in _RULES if all(re.search(rule, lowered) for rule in rules)), "other"),
        language="de" if len(_GERMAN.findall(text)) > len(_ENGLISH.findall(text)) else "en",
        text=text,
        order_id=next(filter(None, map(order_id, [text, *earlier])), ""),
        email=next((match.group() for candidate in [text, *earlier] if (match := _EMAIL.search(candidate))), ""),
        country=next((code for name, code in COUNTRY_CODES.items() if re.search(rf"\b{name}\b", lowered)), ""),
        amount=amount.group(1) if amount else "",
        month=(int(month.group(2)), _MONTHS[month.group(1).lower()]) if month else None,
        product=next(filter(None, map(_product, [text, *earlier])), ""),
        category=next((name for word, name in CATEGORIES.items() if re.search(rf"\b{word}", lowered)), ""),
    )


def order_id(text: str) -> str:
    """The order number in a text, "" when there is none."""
    after_word = _ORDER_AFTER_WORD.search(text)
    if after_word:
        return after_word.group(1)
    match = _ORDER.search(text)
    return match.group() if match else ""


def _product(text: str) -> str:
    """The article that a text names: by its whole name, else by the last word of one name ("headphones")."""
    lowered = text.lower()
    for _, name, *_ in sorted(PRODUCTS, key=lambda product: -len(product[1])):
        if name.lower() in lowered:
            return name
    for _, name, *_ in PRODUCTS:
        if re.search(rf"\b{name.split()[-1].lower()}\b", lowered):
            return name.split()[-1]
    return ""
