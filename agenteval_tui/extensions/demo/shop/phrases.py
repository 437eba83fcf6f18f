"""How the assistant puts things, in German and English. Several ways each; the dice choose."""

from __future__ import annotations

from agenteval_tui.extensions.demo.shop.seeded_random import Dice

STATUS = {
    "de": {
        "processing": "in Bearbeitung",
        "shipped": "unterwegs",
        "delivered": "zugestellt",
        "cancelled": "storniert",
    },
    "en": {
        "processing": "being processed",
        "shipped": "on its way",
        "delivered": "delivered",
        "cancelled": "cancelled",
    },
}

_TEXTS: dict[str, dict[str, tuple[str, ...]]] = {
    "look": {
        "de": ("Einen Moment, ich sehe nach.", "Ich schaue kurz nach.", ""),
        "en": ("One moment, let me look.", "I am looking that up.", ""),
    },
    "schema": {
        "de": ("Zuerst sehe ich mir die Tabelle an.", "Ich prüfe die Spalten der Tabelle.", ""),
        "en": ("First I look at the table.", "Let me check the columns of the table.", ""),
    },
    "sql": {
        "de": (
            "Diese Abfrage liefert das Gewünschte:\n\n```sql\n{sql}\n```",
            "Hier ist die SQL-Abfrage:\n\n```sql\n{sql}\n```",
        ),
        "en": ("This query gives what you want:\n\n```sql\n{sql}\n```", "Here is the query:\n\n```sql\n{sql}\n```"),
    },
    "tried": {
        "de": ("\n\nIch habe sie ausgeführt: {rows} Zeilen.",),
        "en": ("\n\nI ran it: {rows} rows.",),
    },
    "read_only": {
        "de": ("Das kann ich nicht tun: Ich darf die Datenbank nur lesen, nicht ändern.",),
        "en": ("I can't do that: I may only read the database, not change it.",),
    },
    "count": {
        "de": ("Im {month} gab es {n} Bestellungen.", "Es waren {n} Bestellungen im {month}."),
        "en": ("There were {n} orders in {month}.", "{n} orders were placed in {month}."),
    },
    "sum": {
        "de": ("Der Umsatz beträgt zusammen {amount} €.", "Zusammen sind es {amount} €."),
        "en": ("The revenue is {amount} EUR in total.", "Together that is {amount} EUR."),
    },
    "status": {
        "de": ("Ihre Bestellung {order} ist {status}.", "Die Bestellung {order} vom {day} ist {status}."),
        "en": ("Your order {order} is {status}.", "Order {order} of {day} is {status}."),
    },
    "no_order": {
        "de": ("Ich finde keine Bestellung {order}. Bitte prüfen Sie die Nummer.",),
        "en": ("I can't find an order {order}. Please check the number.", "There is no order {order}. Is it right?"),
    },
    "which_order": {
        "de": ("Um welche Bestellung geht es? Die Nummer beginnt mit #W.",),
        "en": ("Which order is it? The number begins with #W.",),
    },
    "orders_of": {
        "de": ("{name} hat {n} Bestellungen: {list}.",),
        "en": ("{name} has {n} orders: {list}.", "I found {n} orders of {name}: {list}."),
    },
    "no_customer": {
        "de": ("Unter {email} ist niemand bekannt.",),
        "en": ("Nobody is known under {email}.",),
    },
    "cancelled": {
        "de": ("Bestellung {order} ist storniert.",),
        "en": ("Done: order {order} has been cancelled.", "Order {order} has been cancelled for you."),
    },
    "too_late": {
        "de": ("Bestellung {order} ist schon {status} und kann nicht mehr storniert werden.",),
        "en": (
            "Order {order} is already {status} and can no longer be stopped. You can send it back instead.",
            "I am sorry, order {order} is already {status}, it is too late to stop it.",
        ),
    },
    "days": {
        "de": ("Sie haben {days} Tage Zeit für die Rückgabe.", "Die Rückgabe ist innerhalb von {days} Tagen möglich."),
        "en": ("You can send it back within {days} days.", "You have {days} days to send it back."),
    },
    "anything_else": {
        "de": ("Kann ich sonst noch helfen?",),
        "en": ("Is there anything else I can do?",),
    },
    "return_made": {
        "de": ("Die Rücksendung {return_id} für {article} ist angelegt. Sie haben dafür {days} Tage Zeit.",),
        "en": (
            "I am sorry about that. Return {return_id} for the {article} is ready, you have {days} days to send it.",
            "Return {return_id} for the {article} is made. Please send it within {days} days.",
        ),
    },
    "no_return": {
        "de": ("Das lässt sich nicht zurückgeben: {why}.",),
        "en": ("That can't be sent back: {why}.",),
    },
    "reviews": {
        "de": ("{n} Kunden bewerten {article} mit {stars} von 5 Sternen. Eine Stimme: „{quote}“",),
        "en": ('{n} customers give the {article} {stars} of 5 stars. One says: "{quote}"',),
    },
    "voucher": {
        "de": (" Der Gutschein über {amount} EUR ist verschickt.",),
        "en": (" The voucher of {amount} EUR has been sent.",),
    },
    "shipping": {
        "de": ("Standardversand: 3 bis 5 Werktage. Expressversand: 1 Werktag, 9,90 EUR.",),
        "en": (
            "There are two ways.\n\n- Standard Shipping: 3 to 5 working days\n"
            "- Express Shipping: 1 working day, 9.90 EUR",
            "With standard shipping it takes 3 to 5 working days; with express shipping 1 working day, for 9.90 EUR.",
        ),
    },
    "products": {
        "de": ("Gefunden:\n\n{list}",),
        "en": ("I found:\n\n{list}",),
    },
    "other": {
        "de": ("Dabei kann ich leider nicht helfen. Ich kenne Bestellungen, Produkte und Rückgaben dieses Ladens.",),
        "en": ("I can't help with that. I know the orders, products and returns of this shop.",),
    },
}


def fill_phrase(dice: Dice, language: str, key: str, **values: object) -> str:
    """The text `key` in a language, one of its wordings, with the values in it."""
    return dice.choose(f"wording {key}", _TEXTS[key][language]).format(**values)
