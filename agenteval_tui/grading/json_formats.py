"""The formats of JSON Schema (draft 2020-12, section 7.3), the same on every machine.

Each predicate follows the RFC that the draft names. `jsonschema` leaves most of these unchecked where a package is
missing, and takes any text with an `@` for an e-mail address; nothing here depends on what else is installed.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

from agenteval_tui.grading.ecma_regex import compile_ecma

if TYPE_CHECKING:
    from jsonschema import FormatChecker

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))")
_CLOCK = r"T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DURATION = re.compile(
    rf"P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)(?:{_CLOCK})?|{_CLOCK})"
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")
_RELATIVE_POINTER = re.compile(r"(?:0|[1-9][0-9]*)(?:[+-][1-9][0-9]*)?(?:#|(?:/(?:[^~/]|~[01])*)*)")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*|{_QUOTED}")
_WIDE = r"[^\x00-\x7f]"
_WIDE_ATOM = rf"(?:[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]|{_WIDE})+"
_WIDE_LOCAL = re.compile(rf'{_WIDE_ATOM}(?:\.{_WIDE_ATOM})*|"(?:[ !#-\[\]-~]|{_WIDE}|\\[ -~])*"')
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")

# RFC 3986, appendix A; RFC 3987, section 2.2.
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_ESCAPED = "%[0-9A-Fa-f]{2}"
_UCS = (
    "\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    + "".join(f"{chr(plane * 0x10000)}-{chr(plane * 0x10000 + 0xFFFD)}" for plane in range(1, 14))
    + "\U000e1000-\U000efffd"
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)  # RFC 3986, app. B
_FUTURE = re.compile(r"[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+")

# RFC 6570, section 2.
_VARIABLE = rf"(?:[A-Za-z0-9_]|{_ESCAPED})(?:\.?(?:[A-Za-z0-9_]|{_ESCAPED}))*(?::[1-9][0-9]{{0,3}}|\*)?"
_TEMPLATE = re.compile(
    rf"(?:[!#$&'(-;=?-\[\]_a-z~{_UCS}{_PRIVATE}]|{_ESCAPED}|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
)


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    try:
        date(year or 2000, month, day)  # the year 0000 is a leap year, as 2000 is; Python begins with 1
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    match = _TIME.fullmatch(text)
    if match is None:
        return False
    hour, minute, second = (int(match[number]) for number in (1, 2, 3))
    sign, hours, minutes = match[4], int(match[5] or 0), int(match[6] or 0)
    if hour > 23 or minute > 59 or second > 60 or hours > 23 or minutes > 59:
        return False
    offset = (hours * 60 + minutes) * (-1 if sign == "-" else 1)
    # A leap second ends the last minute of a day in UTC.
    return second < 60 or (hour * 60 + minute - offset) % 1440 == 1439


def _is_date_time(text: str) -> bool:
    return text[10:11] in ("T", "t") and _is_date(text[:10]) and _is_time(text[11:])


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _is_ipv6(text: str) -> bool:
    # The zone that Python takes (`fe80::1%eth0`) is not part of the address (RFC 4291).
    if "%" in text or not text.isascii():
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_hostname(text: str) -> bool:
    if not text.isascii() or not 0 < len(text) <= 253:
        return False
    return all(_LABEL.fullmatch(label) and _is_a_label(label) for label in text.split("."))


def _is_a_label(label: str) -> bool:
    """Whether a label that says it is one in Punycode is, by IDNA 2008; another must not look like one."""
    if label[2:4] != "--":
        return True
    import idna

    if not label.lower().startswith("xn--"):
        return False
    try:
        idna.ulabel(label)
    except (idna.IDNAError, ValueError):
        return False
    return True


def _is_idn_hostname(text: str) -> bool:
    import idna

    labels = re.split("[.\u3002\uff0e\uff61]", text)
    try:
        idna.encode(text)
        if any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for char in text):
            for label in labels:  # RFC 5893: one label of this kind makes the rule hold for all of them
                idna.check_bidi(label, check_ltr=True)
    except (idna.IDNAError, ValueError, IndexError):
        return False
    return all(labels) and all(not label.isascii() or _is_hostname(label) for label in labels)


def _is_email(text: str) -> bool:
    return _is_mailbox(text, _LOCAL, _is_hostname)


def _is_idn_email(text: str) -> bool:
    return _is_mailbox(text, _WIDE_LOCAL, _is_idn_hostname)


def _is_mailbox(text: str, local: re.Pattern[str], is_domain: Callable[[str], bool]) -> bool:
    name, at, domain = text.rpartition("@")
    # RFC 5321, section 4.5.3.1.1: at most 64 octets before the `@`.
    if not at or len(name.encode("utf-8", "surrogatepass")) > 64 or local.fullmatch(name) is None:
        return False
    if domain.startswith("[") and domain.endswith("]"):
        literal = domain[1:-1]
        if literal[:5].lower() == "ipv6:":
            return _is_ipv6(literal[5:])
        return _IPV4.fullmatch(literal) is not None
    return is_domain(unicodedata.normalize("NFC", domain))


def _of_uri(wide: bool, reference: bool) -> Callable[[str], bool]:
    more = _UCS if wide else ""
    char = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@{more}-]|{_ESCAPED})"
    name = re.compile(rf"(?:[A-Za-z0-9._~!$&'()*+,;={more}-]|{_ESCAPED})*")
    person = re.compile(rf"(?:[A-Za-z0-9._~!$&'()*+,;=:{more}-]|{_ESCAPED})*")
    path = re.compile(rf"(?:{char}|/)*")
    query = re.compile(rf"(?:{char}|[/?{_PRIVATE if wide else ''}])*")
    fragment = re.compile(rf"(?:{char}|[/?])*")

    def is_authority(text: str) -> bool:
        user, at, host = text.rpartition("@")
        if at and person.fullmatch(user) is None:
            return False
        if host.startswith("["):
            literal, closed, port = host[1:].partition("]")
            if not closed or (port and not port.startswith(":")):
                return False
            port = port[1:]
            if not (_is_ipv6(literal) or _FUTURE.fullmatch(literal)):
                return False
        else:
            host, _, port = host.partition(":")
            if name.fullmatch(host) is None:
                return False
        return not port or (port.isascii() and port.isdigit())

    def check(text: str) -> bool:
        match = _PARTS.fullmatch(text)
        assert match is not None
        scheme, authority, way, query_text, part = match.groups()
        if scheme is None and not reference:
            return False
        if scheme is not None and _SCHEME.fullmatch(scheme) is None:
            return False
        if authority is not None and not is_authority(authority):
            return False
        # What would be read as an authority, or as a scheme, can't begin a path (RFC 3986, sections 3.3 and 4.2).
        if path.fullmatch(way) is None or (authority is None and way.startswith("//")):
            return False
        if scheme is None and authority is None and ":" in way.partition("/")[0]:
            return False
        return (query_text is None or query.fullmatch(query_text) is not None) and (
            part is None or fragment.fullmatch(part) is not None
        )

    return check


def _is_regex(text: str) -> bool:
    try:
        compile_ecma(text)
    except ValueError:
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _is_date,
    "time": _is_time,
    "date-time": _is_date_time,
    "duration": _matches(_DURATION),
    "email": _is_email,
    "idn-email": _is_idn_email,
    "hostname": _is_hostname,
    "idn-hostname": _is_idn_hostname,
    "ipv4": _matches(_IPV4),
    "ipv6": _is_ipv6,
    "uri": _of_uri(wide=False, reference=False),
    "uri-reference": _of_uri(wide=False, reference=True),
    "iri": _of_uri(wide=True, reference=False),
    "iri-reference": _of_uri(wide=True, reference=True),
    "uuid": _matches(_UUID),
    "uri-template": _matches(_TEMPLATE),
    "json-pointer": _matches(_POINTER),
    "relative-json-pointer": _matches(_RELATIVE_POINTER),
    "regex": _is_regex,
}
"""By name: whether a text is of that format. Values that are not text match every format."""

FORMATS["host-name"] = FORMATS["hostname"]  # as draft 3 calls it
FORMATS["ip-address"] = FORMATS["ipv4"]


@lru_cache(maxsize=1)
def format_checker() -> FormatChecker:
    """The formats as `jsonschema` takes them."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    for name, holds in FORMATS.items():
        checker.checkers[name] = (_of_texts(holds), ())
    return checker


def _of_texts(holds: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or holds(value)
