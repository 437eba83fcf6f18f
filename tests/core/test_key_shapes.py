"""Keys of well-known services are known by their looks; what only resembles one stays."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from hashlib import sha256, sha512
from urllib.parse import quote
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.agents.base import AgentEvent, Failed, LogLine, TextDelta, ToolCallFinished, TurnEnded
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.agents.recording.keys import KeyRedactor
from agenteval_tui.agents.redaction import EventRedactor
from agenteval_tui.core.key_shapes import without_keys
from agenteval_tui.core.redaction import Redactor
from agenteval_tui.transcripts.codec import to_json
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript
from agenteval_tui.transcripts.redact import NOTHING


def random(size: int, seed: str) -> str:
    """Letters and digits that look random and stay the same, so that no key is written down here."""
    text = "".join(b64encode(sha512(f"{seed}{number}".encode()).digest()).decode() for number in range(size // 64 + 1))
    return ("".join(c for c in text if c.isalnum()) + "A1b2" * size)[:size]


def pem(kind: str, body: int = 900) -> str:
    text = random(body, kind)
    lines = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----"


JWT = ".".join(
    urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","name":"N"}', sha256(b"x").digest())
)
AWS_ID = "AKIA" + "IOSFODNN7EXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
HEX = sha256(b"hex").hexdigest()
# Each with a part that must not stay.
KEYS = {
    "rsa": (pem("RSA PRIVATE KEY"), "PRIVATE"),
    "pkcs8": (pem("PRIVATE KEY"), "PRIVATE"),
    "ec": (pem("EC PRIVATE KEY", 160), "PRIVATE"),
    "openssh": (pem("OPENSSH PRIVATE KEY"), "PRIVATE"),
    "encrypted": (pem("ENCRYPTED PRIVATE KEY"), "PRIVATE"),
    "pgp": (pem("PGP PRIVATE KEY BLOCK"), "PRIVATE"),
    "cut pem": (pem("RSA PRIVATE KEY")[:400], random(64, "RSA PRIVATE KEY")),
    "aws beside its id": (f"{AWS_ID},{AWS_SECRET}", AWS_SECRET),
    "aws ini": (f"aws_secret_access_key = {AWS_SECRET}", AWS_SECRET),
    "aws export": (f"export AWS_SECRET_ACCESS_KEY={AWS_SECRET}", AWS_SECRET),
    "aws json": (json.dumps({"SecretAccessKey": AWS_SECRET}), AWS_SECRET),
    "aws yaml": (f"secretAccessKey: '{AWS_SECRET}'", AWS_SECRET),
    "jwt": (JWT, JWT[:30]),
    "openai": ("sk-" + random(48, "o"), random(48, "o")),
    "openai project": ("sk-proj-" + random(60, "p"), random(60, "p")),
    "anthropic": ("sk-ant-api03-" + random(80, "a"), random(80, "a")),
    "google": ("AIza" + random(35, "g"), random(35, "g")),
    "google oauth": ("ya29." + random(60, "y"), random(60, "y")),
    "github": ("ghp_" + random(36, "h"), random(36, "h")),
    "github fine": ("github_pat_" + random(22, "f") + "_" + random(59, "f2"), random(59, "f2")),
    "gitlab": ("glpat-" + random(20, "l"), random(20, "l")),
    "slack bot": ("xoxb-" + "123456789012-123456789012-" + random(24, "s"), random(24, "s")),
    "slack hook": ("https://hooks.slack.com/services/T00000000/B00000000/" + random(24, "w"), random(24, "w")),
    "stripe": ("sk_live_" + random(24, "t"), random(24, "t")),
    "stripe restricted": ("rk_test_" + random(24, "t"), random(24, "t")),
    "hugging face": ("hf_" + random(34, "hf"), random(34, "hf")),
    "hugging face, letters": ("hf_" + "qWeRtYuIoPaSdFgHjKlZxCvBnMqWeRtYuI", "qWeRtYuIoPaSdFgHjKlZxCvBnMqWeRtYuI"),
    "npm": ("npm_" + random(36, "n"), random(36, "n")),
    "sendgrid": (f"SG.{random(22, 'sg')}.{random(43, 'sh')}", random(43, "sh")),
    "postgres": ("postgresql://app:pa55-w0rd@db.internal:5432/shop", "pa55-w0rd"),
    "redis without a user": ("redis://:pa55-w0rd@cache:6379/0", "pa55-w0rd"),
    "mongo": ("mongodb+srv://u:pa55-w0rd@c.example.net/x", "pa55-w0rd"),
    "sql server": ("Server=tcp:db,1433;Database=shop;User ID=sa;Password=pa55-w0rd;Encrypt=True", "pa55-w0rd"),
    "azure storage": (f"AccountName=a;AccountKey={random(86, 'az')}==;EndpointSuffix=x", random(86, "az")),
    "bearer": (f"Authorization: Bearer {random(30, 'b')}", random(30, "b")),
    "basic": ("Authorization: Basic dXNlcjpwYTU1LXcwcmQ=", "dXNlcjpwYTU1"),
    "encryption key": (f"Using encryption key: {random(43, 'ek')}=", random(43, "ek")),
    "signing key in a sentence": (f"The signing key is {HEX}", HEX),
    "secret key in a file": (f"FERNET_KEY='{random(43, 'fk')}='", random(43, "fk")),
    "header in json": (json.dumps({"authorization": f"Bearer {random(30, 'b')}"}), random(30, "b")),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_a_key_is_taken_out_wherever_it_is(name: str) -> None:
    key, part = KEYS[name]
    for text in (
        key,
        f"before {key} behind",
        f"line\n{key}\n",
        json.dumps({"k": key}),
        json.dumps(json.dumps({"k": key})),
    ):
        cleaned = without_keys(text)
        assert part not in cleaned
        assert "***" in cleaned
    assert "behind" in without_keys(f"before {key} behind")
    assert without_keys(without_keys(key)) == without_keys(key)


@pytest.mark.parametrize("name", ["openai", "github", "google", "jwt"])
def test_a_key_in_an_address(name: str) -> None:
    key, part = KEYS[name]
    assert part not in without_keys(f"https://example.org/x?a=1&b={quote(f'x={key}', safe='')}&c=2")


@pytest.mark.parametrize("name", KEYS)
def test_a_key_is_in_no_channel(name: str) -> None:
    key, part = KEYS[name]
    transcript = Transcript(
        messages=(Message("user", key), Message("assistant", f"a {key} b", reasoning=key)),
        tool_calls=(ToolCall("1", "read", {"text": key, "deep": [{"x": key}]}, f"got {key}"),),
        final_output=f"a {key} b",
        error=RunError("error", f"failed: {key}", f"not {key}"),
        log=f"{key}\n",
    )
    assert part not in json.dumps(to_json(NOTHING.transcript(transcript)))
    body = {"messages": [{"role": "tool", "content": f"got {key}"}], "metadata": {"note": key}}
    events = tuple(
        f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': key[at : at + 9]}}]})}\n\n"
        for at in range(0, len(key), 9)
    )
    for answer in (Answer(200, body=body), Answer(200, body=events)):
        exchange = Exchange(Question("POST", "openai/v1/chat/completions", body=body), answer)
        kept = KeyRedactor().exchange(exchange)
        assert part not in json.dumps([kept.question.body, kept.answer.body])
        if answer.streamed:
            told = "".join(
                json.loads(event.removeprefix("data: "))["choices"][0]["delta"]["content"] for event in kept.answer.body
            )
            assert part not in told


@pytest.mark.sweep("name")
@pytest.mark.parametrize("size", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_streams_in_pieces(name: str, size: int) -> None:
    key, part = KEYS[name]
    text = f"the key is {key} and more.\n"
    redactor = EventRedactor(NOTHING)
    events: list[AgentEvent] = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    told = [clean for event in [*events, TurnEnded()] for clean in redactor.clean(event)]
    whole = "".join(event.text for event in told if isinstance(event, TextDelta))
    assert part not in whole
    assert whole.startswith("the key is ")
    assert whole.endswith("and more.\n")
    for event in (ToolCallFinished(0, key), Failed(RunError("x", key)), LogLine(key)):
        assert part not in repr(redactor.clean(event))


def test_members_of_an_object_are_known_by_names_and_neighbours() -> None:
    data = {"AccessKeyId": AWS_ID, "Secret": AWS_SECRET, "Other": [{"aws_secret_access_key": AWS_SECRET}]}
    assert AWS_SECRET not in json.dumps(Redactor().data(data))
    header = {"Authorization": "Basic dXNlcjpwYTU1LXcwcmQ="}
    assert Redactor().data(header) == {"Authorization": "Basic ***"}
    harmless = {"sha": "3f786850e387550fdab836ed7e6dc881de23001b", "authorization": "required", "key": "value-1"}
    assert Redactor().data(harmless) is harmless


HARMLESS = (
    "commit 3f786850e387550fdab836ed7e6dc881de23001b (HEAD -> main)",
    f"sha256:{HEX} {HEX[:40]} {HEX[:32]}",
    f"{AWS_ID[:4]} is what an id begins with; AKIA alone is none",
    "id 123e4567-e89b-12d3-a456-426614174000, trace 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    f"data:image/png;base64,{b64encode(sha512(b'1').digest() * 40).decode()}",
    pem("CERTIFICATE"),
    pem("PUBLIC KEY"),
    "a file begins with -----BEGIN PRIVATE KEY----- and ends otherwise",
    "class sk-circle-fade-dot-something-long, sk-learn-style-estimators-everywhere, task-force",
    "https://example.org:8080/a/b?x=1#y and http://user@host:80/path and git@github.com:a/b.git",
    "postgres://app:${DB_PASSWORD}@db/shop and postgres://app:<password>@db/shop",
    "Authorization: required. The authorization: denied, bearer tokens are used",
    "password=hunter2 in a form; the password is secret",
    "eyJ is how it begins; see https://a.example/eyJhbGciOi",
    "import hf_transfer; npm_config_registry; gh_token; xoxo; SG.1",
    "def secret_access_key(self): ...  # aws_secret_access_key = os.environ['X']",
    "The encryption key is made anew at each start; a master key: kept in a vault; api key: see the page of that",
    "primary key: 123e4567, idempotency key: 123e4567-e89b-12d3-a456-426614174000",
    "12:34:56 12345678:90 1//0 AAAA",
    "toolu_01A09q90qw90lq917835lq9 chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT msg_01XFDUDYJgAACzvnptvVoYEL",
    "call_abcDEF1234567890abcDEF12 resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_key_stays(text: str) -> None:
    assert without_keys(text) is text
    assert Redactor().data({"k": [text]}) == {"k": [text]}
    redactor = EventRedactor(NOTHING)
    events = [TextDelta(text[at : at + 5]) for at in range(0, len(text), 5)]
    told = [clean for event in [*events, TurnEnded()] for clean in redactor.clean(event)]
    assert "".join(event.text for event in told if isinstance(event, TextDelta)) == text


@given(st.uuids(), st.binary(min_size=20, max_size=20), st.binary(max_size=600))
def test_ids_hashes_and_data_stay(uuid: UUID, digest: bytes, data: bytes) -> None:
    text = f"{uuid} {digest.hex()} {b64encode(data).decode()}"
    assert without_keys(text) is text
