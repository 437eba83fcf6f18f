"""What keys of well-known services look like, wherever they are, so these secrets need no declaration.

A shape must tell a key from what is not one: hashes of git, UUIDs, base64 images and prose stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

STAND_IN = "***"
_AFTER_ESCAPE = r"(?:(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_START = rf"(?:(?<![A-Za-z0-9_-])|{_AFTER_ESCAPE})"
"""A key doesn't follow a letter, but an escape of JSON or of an address may end in one."""
_END = r"(?![A-Za-z0-9_-])"
_QUOTE = r"\\{0,4}[\"']?"
_IS = rf"{_QUOTE}\s{{0,4}}(?:=>|[:=])\s{{0,4}}{_QUOTE}"
"""Between a name and its value, in JSON, YAML, Python, a shell or an ini file, escaped or not."""
_AWS_ID = re.compile(rf"{_START}(?:AKIA|ASIA)[0-9A-Z]{{16}}{_END}")
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_NEAR = 400  # characters between an id and its secret
_SHORTEST = 8  # characters of a text with a key
_LONGEST_NAME = 80  # characters of a name that says something
_NAMED = re.compile(r"secret|token|key|authorization|cookie", re.IGNORECASE)
_KEY_CHARACTER = r"[A-Za-z0-9_./+=-]"
_LONGEST = 4_096  # characters of a key in one line
_BREAK = r"(?:\s|\\+[rnt]|[\"',+>|#*]|//)"
"""Between two lines of a PEM key: the end of a line, also escaped, and what source code puts around lines."""
_LONGEST_PEM = 16_384
_KINDS = ("encryption", "decryption", "fernet", "signing", "master", "secret", "api", "access")
"""What a key is called that is told in a sentence: "Using encryption key: ..."."""
_NAMED_KEY = rf"(?:{'|'.join(_KINDS)})[ _-]?key"
_OPENING = (
    *(write(kind) for kind in _KINDS for write in (str.lower, str.title, str.upper)),
    "sk-",
    "AIza",
    "GOCSPX-",
    "ya29.",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "glptt-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxr-",
    "xoxs-",
    "xoxe",
    "xapp-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "whsec_",
    "AKIA",
    "ASIA",
    "hf_",
    "gsk_",
    "xai-",
    "pplx-",
    "npm_",
    "pypi-",
    "dop_v1_",
    "SG.",
    "eyJ",
    "hvs.",
    "AGE-SECRET-KEY-",
    "r8_",
    "Authorization",
    "authorization",
    "Bearer",
    "aws_secret",
    "AWS_SECRET",
    "Secret",
    "secret",
    "SECRET",
    "AccountKey",
    "SharedAccess",
    "hooks.slack",
    "x-api-key",
    "X-Api-Key",
    "Server",
    "server",
    "Data Source",
    "Host",
    "host",
    "tvly-",
    "nvapi-",
    "shpat_",
)
"""What most keys begin with: where a stream ends in one of these, more is waited for."""


class _Shape(Struct, frozen=True):
    """A key that what is before it tells: `clues`, in lower case, one of which is in every text that holds it, and the
    pattern. The group `key`, where there is one, is the secret part of a match; `sure` decides about that part."""

    clues: tuple[str, ...]
    pattern: re.Pattern[str]
    sure: Callable[[str], bool] | None = None


def _shape(clues: str, pattern: str, sure: Callable[[str], bool] | None = None) -> _Shape:
    return _Shape(tuple(clues.split(" ")), re.compile(pattern, re.IGNORECASE), sure)


def _mixed(text: str) -> bool:
    """A random text of letters of both cases and digits; not a hash in hexadecimal, a path or a word."""
    return any(c.isupper() for c in text) and any(c.islower() for c in text) and any(c.isdigit() for c in text)


def _digit(text: str) -> bool:
    """A text with a digit: no word, and no name in an example."""
    return any(c.isdigit() for c in text)


def _random(text: str) -> bool:
    """A text with a digit and a long part without a hyphen: not a name like `sk-circle-fade-dot`."""
    parts = text.replace("_", "-").split("-")
    return any(c.isdigit() for c in text) and max(map(len, parts)) >= 12


def _credential(text: str) -> bool:
    """What stands for somebody: not a word as in "authorization: required"."""
    text = text.rstrip(".:")
    return not text.isalpha() or len(text) >= 24 or not (text.islower() or text.istitle())


def _no_placeholder(text: str) -> bool:
    """A password as it is, not the name of a variable (`${DB_PASSWORD}`, `<password>`, `{password}`) or `***`."""
    return text[0] not in "$<{%" and text.strip("*xX.") != ""


_TOKENS = (
    r"sk-(?:ant|proj|or|svcacct|admin|lf|None)-[A-Za-z0-9_-]{16,}",
    r"AGE-SECRET-KEY-1[0-9A-Z]{50,}",
    rf"AIza[0-9A-Za-z_-]{{35}}{_END}",
    r"GOCSPX-[A-Za-z0-9_-]{20,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    rf"(?:AKIA|ASIA)[0-9A-Z]{{16}}{_END}",
    r"gh[pousr]_[A-Za-z0-9_.-]{30,}",
    r"github_pat_\w{22,}",
    r"gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas)-[A-Za-z0-9_.-]{16,}",
    r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}",
    r"x(?:app|wfp)-\d-[A-Za-z0-9-]{10,}",
    r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"whsec_[A-Za-z0-9+/=]{20,}",
    r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}",
    r"pcsk_[A-Za-z0-9]{5,6}_[A-Za-z0-9]{40,}",
    rf"hf_[A-Za-z]{{34}}{_END}",  # Hugging Face's have letters only
    r"npm_[A-Za-z0-9]{36,}",
    r"pypi-[A-Za-z0-9_-]{50,}",
    r"rubygems_[0-9a-f]{40,}",
    r"dckr_pat_[A-Za-z0-9_-]{20,}",
    r"do[opr]_v1_[0-9a-f]{64}",
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    r"lin_api_[A-Za-z0-9]{32,}",
    r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}",
    r"sntry[su]_[A-Za-z0-9_=+/-]{40,}",
    r"hv[sb]\.[A-Za-z0-9_-]{24,}",
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{40,}",
    r"NRAK-[A-Z0-9]{27}",
    r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}",
    rf"dapi[0-9a-f]{{32}}(?:-\d)?{_END}",
    r"sbp_[0-9a-f]{40}",
    r"sq0csp-[A-Za-z0-9_-]{43}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}",
    rf"\d{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_END}",
    # JSON web tokens: signed ones and encrypted ones.
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]{10,}){2,3}",
)
"""Keys that begin with their service's own letters."""
_LOOSE_TOKENS = (
    r"sk-[A-Za-z0-9_-]{20,}",
    r"(?:hf|api_org)_[A-Za-z0-9]{30,}",
    r"gsk_[A-Za-z0-9]{20,}",
    r"xai-[A-Za-z0-9]{40,}",
    r"pplx-[A-Za-z0-9]{30,}",
    r"r8_[A-Za-z0-9]{30,}",
    r"tvly-[A-Za-z0-9-]{20,}",
    r"nvapi-[A-Za-z0-9_-]{40,}",
    r"fw_[A-Za-z0-9]{20,}",
    r"tgp_v1_[A-Za-z0-9_-]{30,}",
    r"csk-[A-Za-z0-9]{40,}",
    r"jina_[A-Za-z0-9_-]{40,}",
    r"ntn_[A-Za-z0-9]{40,}",
    r"figd_[A-Za-z0-9_-]{40,}",
    rf"secret_[A-Za-z0-9]{{43}}{_END}",
)
"""Keys whose first letters are also those of names: they have digits, and a long part without a hyphen."""
_TOKEN_TEXT = rf"(?:{'|'.join(_TOKENS)}|(?P<loose>{'|'.join(_LOOSE_TOKENS)}))"
_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])" + _TOKEN_TEXT)
_TOKEN_AFTER_ESCAPE = re.compile(_AFTER_ESCAPE + _TOKEN_TEXT)

_SHAPES = (
    # PEM and its kin: to the end, or as far as the text goes.
    _shape(
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?:(?:(?!-----BEGIN )[\s\S]){{1,{_LONGEST_PEM}}}?-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"
        rf"|(?:{_BREAK}{{0,12}}(?:(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n\\]{{0,80}}|[A-Za-z0-9+/=]{{16,}}))+"
        r"(?:(?:\n|\\+n)[A-Za-z0-9+/=]{1,15}(?=\s|\\|[\"']|\Z))?)",
    ),
    _shape(
        "putty-user-key-file",
        r"PuTTY-User-Key-File-\d:[\s\S]{1,8192}?Private-Lines: ?(?P<key>\d+(?:(?:\s|\\+[rn])+[A-Za-z0-9+/=]{2,})+)",
    ),
    _shape(
        "hooks.slack.com/ discord",
        r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/(?:v\d+/)?webhooks/)"
        r"(?P<key>[A-Za-z0-9_/-]{20,})",
    ),
    _shape("1//0", r"(?<![\w/:.-])1//0[A-Za-z0-9_-]{30,}"),
    _shape(
        "secret",
        rf"(?:secret_?access_?key|aws_?secret(?:_?key)?|secret_?key){_IS}"
        r"(?P<key>[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=]))",
        _mixed,
    ),
    _shape("sessiontoken session_token", rf"session_?token{_IS}(?P<key>[A-Za-z0-9/+=_-]{{60,}})"),
    _shape(
        "accountkey sharedaccess",
        r"(?:AccountKey|SharedAccessKey|SharedAccessSignature)=(?P<key>[A-Za-z0-9+/=%&-]{20,})",
    ),
    _shape("sig=", r"[?&]sig=(?P<key>[A-Za-z0-9%+/=_-]{30,})"),
    _shape("x-amz-", r"X-Amz-(?:Signature|Security-Token)=(?P<key>[A-Za-z0-9%+/=_-]{30,})"),
    _shape(
        "://",
        r"://[^\s/:@?#\"'<>\\]{0,128}:(?P<key>[^\s@/\"'<>\\]{1,256})@(?=[A-Za-z0-9\[]|\Z)",
        _no_placeholder,
    ),
    _shape(
        "pwd= password=",
        r"(?:(?:server|data source|host|user id|uid|username|user|initial catalog|database|dbname)\s?="
        r"[^;\"'\n]{1,120};\s?){1,10}(?:pwd|password)=\s?(?P<key>[^;\"'\s]{3,128})",
        _no_placeholder,
    ),
    _shape(
        "authorization",
        rf"authorization{_IS}(?:(?:Bearer|Basic|Token|ApiKey|Api-Key|Negotiate|GenieKey|SSWS)\s{{1,4}})?"
        r"(?P<key>[A-Za-z0-9._~+/=:-]{8,})",
        _credential,
    ),
    _shape("bearer", r"\bBearer(?:\s|%20|\+){1,4}(?P<key>[A-Za-z0-9._~+/-]{20,}=*)", _digit),
    _shape("api-key", rf"(?:x-(?:goog-)?api-key|\bapi-key){_IS}(?P<key>[A-Za-z0-9._~+/=-]{{16,}})", _digit),
    _shape(
        "key",
        rf"{_NAMED_KEY}(?:{_IS}|\s{{1,4}}is:?\s{{1,4}}{_QUOTE})(?P<key>[A-Za-z0-9+/_-]{{32,}}={{0,2}})",
        _random,
    ),
)
_RUN = re.compile(r"(?<![A-Za-z0-9_+/=.~%-])[A-Za-z0-9_+/=.~%:-]{16}")
"""Hardly any prose has one, and hardly any key has none: most texts need no more looking."""
_WITHOUT_RUN = ("://", "authorization", "pwd=", "password=")


def without_keys(text: str) -> str:
    """`text` with `***` for all that looks like a key; the same object where nothing does."""
    if len(text) < _SHORTEST:
        return text
    lower = text.lower()
    if _RUN.search(text) is None and not any(word in lower for word in _WITHOUT_RUN):
        return text
    if "AKIA" in text or "ASIA" in text:
        text = _without_secret_of_id(text)
    text = _without_tokens(_TOKEN, text)
    if "\\" in text or "%" in text:
        text = _without_tokens(_TOKEN_AFTER_ESCAPE, text)
    for shape in _SHAPES:
        if any(word in lower for word in shape.clues):
            text = _taken(shape, text)
    return text


def _without_tokens(pattern: re.Pattern[str], text: str) -> str:
    matches = pattern.finditer(text)
    return _masked(text, (match.span() for match in matches if match["loose"] is None or _random(match["loose"])))


def without_keys_in(names: Mapping[str, Any]) -> dict[str, str]:
    """Of an object of JSON data, the members that are keys because of their names or of their neighbours, each as it
    may be shown; members that are keys by themselves are not looked for."""
    cleaned: dict[str, str] = {}
    has_id = any(isinstance(value, str) and _AWS_ID.fullmatch(value) for value in names.values())
    for name, value in names.items():
        if not isinstance(value, str) or len(value) < _SHORTEST or not isinstance(name, str):
            continue
        if has_id and _AWS_SECRET.fullmatch(value) and _mixed(value):
            cleaned[name] = STAND_IN
            continue
        before = f"{name}: "
        if len(name) <= _LONGEST_NAME and _NAMED.search(name):
            clean = without_keys(before + value)
            if clean.startswith(before) and clean != before + value:
                cleaned[name] = clean[len(before) :]
    return cleaned


def open_key(text: str) -> int:
    """How many characters at the end of a text may be the beginning of a key, of which more is to come."""
    match = _OPEN.search(text, max(0, len(text) - _LONGEST))
    begin = len(text) if match is None else match.start()
    pem = text.rfind("-----BEGIN ", max(0, len(text) - _LONGEST_PEM))
    if pem >= 0 and _OPEN_PEM.match(text, pem):
        begin = min(begin, pem)
    return len(text) - begin


def _taken(shape: _Shape, text: str) -> str:
    group = "key" if "key" in shape.pattern.groupindex else 0
    keys = (match for match in shape.pattern.finditer(text) if match[group] != STAND_IN)
    return _masked(text, (key.span(group) for key in keys if shape.sure is None or shape.sure(key[group])))


def _masked(text: str, places: Iterable[tuple[int, int]]) -> str:
    """`text` with `***` in these places, which follow one another; the same object where there are none."""
    parts: list[str] = []
    end = 0
    for start, behind in places:
        parts += (text[end:start], STAND_IN)
        end = behind
    return "".join([*parts, text[end:]]) if parts else text


def _without_secret_of_id(text: str) -> str:
    """A secret access key has no letters of its own: it is what looks like one near its id."""
    ids = [match.start() for match in _AWS_ID.finditer(text)]

    near = (match for match in _AWS_SECRET.finditer(text) if any(abs(match.start() - at) <= _NEAR for at in ids))
    return _masked(text, (match.span() for match in near if _mixed(match[0])))


def _beginnings(word: str) -> str:
    """A pattern of every beginning of a word, and of the word with what follows it in a key."""
    pattern = rf"{re.escape(word[-1])}{_KEY_CHARACTER}{{0,{_LONGEST}}}"
    for character in reversed(word[:-1]):
        pattern = rf"{re.escape(character)}(?:{pattern})?"
    return pattern


_OPEN = re.compile(
    rf"{_START}(?:{'|'.join(_beginnings(word) for word in _OPENING)})\Z"
    rf"|:(?:/(?:/[^\s/@\"'<>]{{0,400}}@?)?)?\Z"
    rf"|(?<![A-Za-z0-9-])-{{1,5}}\Z|-----B[A-Z ]{{0,40}}-{{0,5}}\Z"
    rf"|(?:AKIA|ASIA)[0-9A-Z]{{16}}(?:[^A-Z0-9][\s\S]{{0,160}})?\Z"
    rf"|(?i:(?:authorization|\bbearer|secret_?access_?key|aws_?secret|secret_?key|session_?token|api-key|accountkey"
    rf"|sharedaccess|hooks\.slack|discord|[?&]sig=|x-amz-)[^\n]{{0,600}}\Z)"
    rf"|(?i:(?:{'|'.join(_KINDS)})(?:[ _-]|[ _-]?ke?|[ _-]?key[^\n]{{0,200}})\Z)"
    rf"|(?i:\b(?:server|data source|host|user id|uid|username|user|database|dbname)\s?=[^\n\"']{{0,600}}\Z)"
)
_OPEN_PEM = re.compile(
    rf"-----BEGIN [A-Z0-9 ]{{0,40}}(?:PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:(?!-----END [A-Z0-9 ]{{0,40}}KEY(?: BLOCK)?-----)[\s\S]){{0,{_LONGEST_PEM}}})?-{{0,5}}\Z"
)
