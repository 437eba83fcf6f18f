"""Texts that good answers have and bad ones lack, or the reverse; and patterns generalised from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import regex

from agenteval_tui.core.groups import grouped
from agenteval_tui.core.phrasing import quoted
from agenteval_tui.extensions.suggest.conditions import Family, Measure, Pool, Say, agreed, bits
from agenteval_tui.extensions.suggest.examples import Examples, most_frequent, numbers, runs_by_key
from agenteval_tui.grading.placeholders import literally, text_of

_READ = 20_000
"""Characters of an answer that texts are taken from."""
_PHRASE = 4
"""Words of a text that is looked for."""
_LONGEST = 60
_PIECES = 400_000
"""Texts that are counted; with more, phrases are shorter."""
_KEPT = 160
_ALIKE = 3
"""Texts that are kept of those in the same runs."""
_WORDS = 300
"""Words whose frequency is looked at."""
_SHORT_ANSWER = 80
_PAIRS = ("()", "[]", "{}", "<>", "“”", "«»", "‘’")
_TOKEN = regex.compile(r"[#$€£@]?[\p{L}\p{M}\p{N}]+(?:[.,:'’/@_-]+[\p{L}\p{M}\p{N}]+)*%?")
_DIGITS = regex.compile(r"\d+")
_NUMBER = r"\b\d+\b"
_LETTERS = regex.compile(r"[A-Z]+|[a-z]+")


def text_families(examples: Examples) -> list[Family]:
    """All families of texts and patterns."""
    return [*_Texts(examples).families(), *_word_counts(examples), _paragraphs(examples)]


class _Texts:
    """The texts of the labelled answers."""

    def __init__(self, examples: Examples) -> None:
        self.examples = examples
        self.texts = [text[:_READ] for text in examples.answers]
        self.lower = [text.lower() for text in examples.answers]

    def families(self) -> Iterator[Family]:
        """Contains, does not contain, begins, ends, is."""
        examples = self.examples
        good, bad = examples.good, examples.bad
        pieces = self._pieces()
        cost = bits(len(pieces))
        present, unwanted = Pool(examples, 40), Pool(examples, 40)
        if not bad:
            self._add_shared(present, pieces)
        for text, mask in self._best(pieces, good, bad) if bad else ():
            self._add_contains(present, text, mask, cost + self._cost(text))
        for text, mask in self._best(pieces, bad, good) if bad else ():
            self._add_lacks(unwanted, text, mask, cost + 0.5 + self._cost(text))
        yield present
        yield unwanted
        yield self._variables()
        yield self._patterns(good, bad)
        yield self._edges()
        yield self._whole()

    @cached_property
    def known(self) -> list[str]:
        """For each run, in lower case, what the agent could know: the prompt, the row, what tools gave."""
        texts = []
        for example in self.examples.runs:
            parts = [message.content for message in example.transcript.messages if message.role in ("user", "tool")]
            parts += [call.result or "" for call in example.transcript.tool_calls]
            parts += [text_of(value) for value in example.variables.values()]
            texts.append("\n".join(parts)[: 4 * _READ].lower())
        return texts

    @cached_property
    def _known_of_good(self) -> str:
        return "\n".join(self.known[number] for number in numbers(self.examples.good))

    def _cost(self, text: str) -> float:
        """More for more words, and for short words that say little; less for data that the agent was given."""
        has_digit = any(char.isdigit() for char in text)
        is_known = (
            (has_digit or len(text) > 4)
            and text in self._known_of_good  # most are not: a single look tells
            and any(_stands_in(self.known[number], text) for number in numbers(self.examples.good))
        )
        # A number with its unit, as a tool gave it, is one thing.
        cost = (0.2 if is_known and has_digit else 1.5) * text.count(" ")
        cost += 0.5 * text.isdigit()  # without its unit, it may be a part of any other number
        cost -= 1.0 * is_known + 1.0 * (has_digit and (is_known or len(text) > 2))
        if all(len(word) <= 3 and not any(char.isdigit() for char in word) for word in text.split()):
            cost += 3.0
        return cost

    def _pieces(self) -> dict[str, int]:
        """Every text of one to four words in lower case, with the labelled runs that have it."""
        labelled = [(number, self.texts[number]) for number in numbers(self.examples.labelled)]
        tokens = {number: _tokens(text) for number, text in labelled}
        # The longer the answers, the shorter the phrases: their number is bounded.
        words = max(1, min(_PHRASE, _PIECES // max(1, sum(map(len, tokens.values())))))
        lower = [(number, text.lower()) for number, text in labelled]
        # The places of words are those of the text, and a letter such as `İ` is longer in lower case.
        same = [(number, text) for number, text in lower if len(text) == len(self.texts[number])]
        return runs_by_key((piece, number) for number, text in same for piece in _phrases(text, tokens[number], words))

    def _best(self, pieces: Mapping[str, int], inside: int, outside: int) -> list[tuple[str, int]]:
        """The texts that part the runs best; of those in the same runs the cheapest."""
        ranked = sorted(
            ((-agreed(mask, inside, outside), mask) for mask in set(pieces.values()) if mask & inside),
            key=lambda entry: (entry[0], -(entry[1] & inside).bit_count(), entry[1]),
        )
        if not outside:
            ranked = [entry for entry in ranked if not inside & ~entry[1]]
        # Thousands of texts may be in the same runs: which is best is asked only of runs that are parted best.
        chosen = {mask for _, mask in ranked[:_KEPT]}
        by_mask = grouped((mask, text) for text, mask in pieces.items() if mask in chosen)
        best: list[tuple[str, int]] = []
        most = _ALIKE if outside else 40
        for _, mask in ranked[:_KEPT]:
            texts = sorted(by_mask[mask], key=lambda text: (self._cost(text), -len(text), text))
            best += [(text, mask) for text in texts[:most]]
        return best[:_KEPT]

    def _add_shared(self, pool: Pool, pieces: Mapping[str, int]) -> None:
        """Without a bad run: what all good answers say, first what the agent was told (the longest piece of it), then
        what has a number in it. Of a single answer only these: everything else in it may be chance."""
        good = self.examples.good
        few = good.bit_count() == 1
        ranked: list[tuple[tuple[int, int, str], str]] = []
        for text, mask in pieces.items():
            if good & ~mask or len(text) < 2:
                continue
            is_known = len(text) > 3 and all(_stands_in(self.known[number], text) for number in numbers(good))
            data = any(char.isdigit() for char in text)
            words = text.count(" ") + 1
            if not (is_known and data) and few and not (data and words == 1) and not (is_known and words > 1):
                continue
            ranked.append(
                ((-2 * (is_known and data) - (is_known or data), -words if is_known or not few else words, text), text)
            )
        for place, (_, text) in enumerate(sorted(ranked)[:40]):
            self._add_contains(pool, text, pieces[text], 4.0 + place / 10)

    def _written(self, text: str) -> set[str]:
        """How a text is written in the runs, with its capitals."""
        spellings = set()
        for number in numbers(self.examples.labelled):
            at = self.lower[number].find(text)
            if at >= 0 and len(self.lower[number]) == len(self.examples.answers[number]):
                spellings.add(self.examples.answers[number][at : at + len(text)])
        return spellings or {text}

    def _add_contains(self, pool: Pool, text: str, mask: int, cost: float) -> None:
        written = self._written(text)
        inside = self.examples.mask_of_texts(text)
        passes: int | None = None
        if inside & self.examples.labelled != mask:
            metric = {"type": "Regex", "pattern": f"/{_bounded(text)}/iu"}
        elif len(written) == 1:
            metric = {"type": "TextMatch", "contains": literally(min(written))}
            passes = self.examples.mask(lambda example: min(written) in example.transcript.final_output)
        else:
            metric, passes = {"type": "TextMatch", "contains_ignore_case": literally(text)}, inside
        source = mask & self.examples.good
        pool.add(f"says {quoted(min(written))}", metric, cost, passes=passes, source=source, about="texts")

    def _add_lacks(self, pool: Pool, text: str, mask: int, cost: float) -> None:
        written = self._written(text)
        inside = self.examples.mask_of_texts(text)
        metric: dict[str, Any] = {"type": "Regex", "pattern": f"/{_bounded(text)}/iu", "not": True}
        passes: int | None = None
        if inside & self.examples.labelled == mask and len(written) == 1:
            metric = {"type": "TextMatch", "not_contains_any": [literally(min(written))]}
            passes = self.examples.mask(lambda example: min(written) not in example.transcript.final_output)
        source = mask & self.examples.bad
        pool.add(f"does not say {quoted(min(written))}", metric, cost, passes=passes, source=source, about="texts")

    def _variables(self) -> Family:
        """Values of the row: what is asked for differs from row to row, and the criterion follows."""
        pool = Pool(self.examples)
        names = sorted({name for example in self.examples.runs for name in example.variables})
        for name in names:
            values = [example.variables.get(name) for example in self.examples.runs]
            texts = [text_of(value) if isinstance(value, str | int | float) else "" for value in values]
            # An empty value is in each text, and only an identifier can be a placeholder.
            if any(not text.strip() for text in texts) or not name.isidentifier():
                continue
            for metric, title in (
                ({"type": "TextMatch", "contains_ignore_case": f"{{{{{name}}}}}"}, f"says the row's {name}"),
                ({"type": "TextMatch", "not_contains_any": [f"{{{{{name}}}}}"]}, f"does not say the row's {name}"),
                ({"type": "TextMatch", "equals": f"{{{{{name}}}}}"}, f"is the row's {name}"),
            ):
                pool.add(title, metric, 2.0 + bits(len(names)), about="row")
        return pool

    def _patterns(self, good: int, bad: int) -> Family:
        """Texts whose numbers, ids and dates differ from run to run, as regular expressions."""
        pool = Pool(self.examples)
        masks: dict[str, int] = {}
        literal: dict[str, set[str]] = {}
        for number in numbers(self.examples.labelled):
            text = self.texts[number]
            for pattern, source in _generalised(text):
                masks[pattern] = masks.get(pattern, 0) | 1 << number
                # Two are enough to see that the texts differ.
                if len(sources := literal.setdefault(pattern, set())) < 2:
                    sources.add(source)
        # A number alone is a shape already.
        varied = {pattern: mask for pattern, mask in masks.items() if len(literal[pattern]) > 1 and pattern != _NUMBER}
        # Tables of numbers make a pattern of each pair of neighbours.
        if len(varied) > 5_000:
            varied = {pattern: mask for pattern, mask in varied.items() if " " not in pattern}
        cost = bits(len(varied)) + 4.0
        for inside, outside, unwanted in ((good, bad, False), (bad, good, True)):
            ranked = sorted(
                (entry for entry in varied.items() if entry[1] & inside and (outside or not inside & ~entry[1])),
                key=lambda entry: (-agreed(entry[1], inside, outside), len(entry[0]), entry[0]),
            )
            for pattern, mask in ranked[:20]:
                metric: dict[str, Any] = {"type": "Regex", "pattern": f"/{pattern}/u"}
                if unwanted:
                    metric["not"] = True
                title = f"{'lacks' if unwanted else 'has'} a text like {quoted(min(literal[pattern]))}"
                pool.add(title, metric, cost + 1.5 * pattern.count(" "), source=mask, about="texts")
        return pool

    def _edges(self) -> Family:
        """How answers begin and end."""
        pool = Pool(self.examples)
        begins: dict[str, int] = {}
        ends: dict[str, int] = {}
        around: dict[tuple[str, str], int] = {}
        possible: set[tuple[str, str]] = set()
        for number in numbers(self.examples.labelled):
            text = self.texts[number].strip()
            # Of one that was cut for reading, the end is not known.
            if not text or len(self.examples.answers[number]) > _READ:
                continue
            places = _tokens(text)
            starts = {text[: places[count][1]] for count in range(min(3, len(places)))} | {text[:1]}
            stops = {text[places[-count - 1][0] :] for count in range(min(4, len(places)))} | {text[-1:]}
            for name, texts, masks in (("begins", starts, begins), ("ends", stops, ends)):
                for piece in texts:
                    if len(piece) <= _LONGEST and "\n" not in piece:
                        possible.add((name, piece))
                        if self.examples.good >> number & 1:
                            masks[piece] = masks.get(piece, 0) | 1 << number
            if not text[0].isalnum() and not text[-1].isalnum() and len(text) > 1 and self.examples.good >> number & 1:
                key = text[0], text[-1]
                around[key] = around.get(key, 0) | 1 << number
        cost = bits(len(possible)) + 1.0
        for pieces, name, verb in ((begins, "starts_with", "begins with"), (ends, "ends_with", "ends with")):
            ranked = sorted(
                ((text, mask) for text, mask in pieces.items() if self.examples.bad or not self.examples.good & ~mask),
                key=lambda entry: (-entry[1].bit_count(), len(entry[0]), entry[0]),
            )
            for text, mask in ranked[:30]:
                metric = {"type": "TextMatch", name: literally(text)}
                price = cost + 0.5 * text.count(" ") - (1.0 if len(text) == 1 and not text.isalnum() else 0.0)
                pool.add(f"{verb} {quoted(text)}", metric, price, source=_plain(mask, text), about=name)
        for (first, last), mask in sorted(around.items()):
            cost = 6.0 if first == last or first + last in _PAIRS else 10.0
            metric = {"type": "Regex", "pattern": f"/\\A\\s*{escaped(first)}[\\s\\S]*{escaped(last)}\\s*$/"}
            title = f"is wrapped in {quoted(first)} and {quoted(last)}"
            pool.add(title, metric, cost, source=_plain(mask, first), about="edges")
        return pool

    def _whole(self) -> Family:
        """Answers that are a word or two."""
        pool = Pool(self.examples)
        good = ((self.examples.answers[number], number) for number in numbers(self.examples.good))
        answers = runs_by_key(pair for pair in good if 0 < len(pair[0]) <= _SHORT_ANSWER and pair[0] == pair[0].strip())
        for text, mask in most_frequent(answers, 8):
            metric: dict[str, Any] = {"type": "TextMatch", "equals": literally(text)}
            cost = 3.0 + bits(len(answers)) + 1.5 * text.count(" ")
            pool.add(f"is {quoted(text)}", metric, cost, source=mask)
        # A list of more would be a list of the runs.
        if 1 < len(answers) <= 5:
            texts = sorted(answers)
            metric = {"type": "Regex", "pattern": f"/\\A(?:{'|'.join(map(escaped, texts))})\\s*$/"}
            title = f"is one of {', '.join(quoted(text, 20) for text in texts)}"
            pool.add(title, metric, 4.0 + sum(2.0 + 1.5 * text.count(" ") for text in texts))
        return pool


def _plain(mask: int, text: str) -> int:
    """What a beginning or an end was made of: of a single sign, anything would have done."""
    return -1 if len(text) == 1 and not text.isalnum() else mask


def _stands_in(source: str, text: str) -> bool:
    """Whether a text of whole words is a text of whole words there."""
    at = source.find(text)
    while at >= 0:
        end = at + len(text)
        if not (source[at - 1 : at].isalnum() and text[0].isalnum()) and not source[end : end + 1].isalnum():
            return True
        at = source.find(text, at + 1)
    return False


def _tokens(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _TOKEN.finditer(text)]


def _phrases(text: str, places: Sequence[tuple[int, int]], most: int) -> Iterator[str]:
    """The texts of up to `most` words that stand on one line."""
    for first, (start, _) in enumerate(places):
        for last in range(first, min(first + most, len(places))):
            end = places[last][1]
            if last > first and (places[last][0] - places[last - 1][1] > 3 or "\n" in text[places[last - 1][1] : end]):
                break
            if end - start > _LONGEST:
                break
            yield text[start:end]


def _generalised(text: str) -> Iterator[tuple[str, str]]:
    """Patterns for what has digits in it: alone, and with a word before or after; each with the text it is of."""
    places = _tokens(text)
    for at, (start, end) in enumerate(places):
        token = text[start:end]
        if not any(char.isdigit() for char in token):
            continue
        for pattern in {_pattern(token, letters=False), _pattern(token, letters=True)}:
            yield pattern, token
            for beside in (at - 1, at + 1):
                if not 0 <= beside < len(places):
                    continue
                left, right = min(places[beside], places[at]), max(places[beside], places[at])
                other = text[slice(*places[beside])]
                between = text[left[1] : right[0]]
                if len(between) > 3 or "\n" in between or any(char.isdigit() for char in other):
                    continue
                parts = (escaped(other), pattern) if beside < at else (pattern, escaped(other))
                yield escaped(between).join(parts), text[left[0] : right[1]]


def _pattern(token: str, *, letters: bool) -> str:
    """A pattern for a token: digits become `\\d+`, runs of letters `[A-Z]+` and `[a-z]+` where they may differ."""
    parts: list[str] = []
    at = 0
    while at < len(token):
        digits = _DIGITS.match(token, at)
        run = _LETTERS.match(token, at) if letters else None
        if digits is not None:
            parts.append("\\d+")
            at = digits.end()
        elif run is not None:
            parts.append("[A-Z]+" if run[0][0].isupper() else "[a-z]+")
            at = run.end()
        else:
            parts.append(escaped(token[at]))
            at += 1
    edge = "\\b" if token[0].isalnum() else ""
    return f"{edge}{''.join(parts)}\\b" if token[-1].isalnum() else edge + "".join(parts)


def _word_counts(examples: Examples) -> Iterator[Family]:
    """How often a word is said."""
    counts: list[Counter[str]] = []
    for number in range(len(examples)):
        text = examples.answers[number][:_READ].lower()
        counts.append(Counter(text[start:end] for start, end in _tokens(text)))
    often: Counter[str] = Counter()
    for number in numbers(examples.labelled):
        often.update({word: 1 for word, count in counts[number].items() if count > 1 and not word[0].isdigit()})
    chosen = [word for word, _ in sorted(often.items(), key=lambda entry: (-entry[1], entry[0]))[:_WORDS]]
    cost = bits(len(chosen)) + 3.0
    for word in chosen:
        short = 2.0 if len(word) <= 3 else 0.0
        values = [float(count[word]) for count in counts]
        yield Measure(values, counter(_bounded(word), "i", f"{quoted(word)}"), cost + short, about=f"word {word}")


def _paragraphs(examples: Examples) -> Family:
    """With which word a paragraph begins."""
    pool = Pool(examples)
    paragraphs = (
        (place, part, number)
        for number in numbers(examples.labelled)
        for place, part in enumerate(regex.split(r"\n[ \t]*\n\s*", examples.answers[number][:_READ].strip())[:8])
    )
    masks = runs_by_key(
        ((place, match[0].lower()), number)
        for place, part, number in paragraphs
        if (match := _TOKEN.search(part[:100])) is not None
    )
    cost = bits(len(masks)) + 4.0
    shared = ((key, mask) for key, mask in masks.items() if mask & examples.good)
    ranked = sorted(shared, key=lambda entry: (-agreed(entry[1], examples.good, examples.bad), entry[0]))
    for (place, word), mask in ranked[:30]:
        before = f"(?>[\\s\\S]*?\\n[ \\t]*\\n\\s*){{{place}}}" if place else "\\s*"
        metric = {"type": "Regex", "pattern": f"/\\A{before}[^\\p{{L}}\\p{{N}}]{{0,9}}{_bounded(word)}/i"}
        title = f"{f'paragraph {place + 1} ' if place else ''}begins with the word {quoted(word)}"
        pool.add(title, metric, cost, source=mask, about="paragraphs")
    return pool


# Patterns that are linear in the text, whatever it is: each repetition is atomic, and the first one is anchored


def escaped(text: str) -> str:
    """The text as a pattern finds it, between slashes."""
    pattern = "".join("\\" + char if char in "\\^$.|?*+()[]{}/" else char for char in text)
    return pattern.replace("\n", "\\n").replace("\t", "\\t")


def _bounded(word: str) -> str:
    left = "\\b" if word[0].isalnum() else ""
    return f"{left}{escaped(word)}" + ("\\b" if word[-1].isalnum() else "")


def times_in_words(count: float) -> str:
    """`once`, `3 times`."""
    return "once" if count == 1 else f"{count:g} times"


def counter(token: str, flags: str, what: str, literal: str = "") -> Say:
    """Words and the metric for bounds on how often a pattern is found. `literal`: the text that it
    finds, if that is all."""

    def say(least: float | None, most: float | None) -> tuple[str, dict[str, Any]]:
        none = "no " + regex.sub(r"^(?:an?|the) ", "", what).removeprefix("something")
        none = none.replace("no  ", "nothing ")
        if most == 0 and literal:
            return f"has {none}", {"type": "TextMatch", "not_contains_any": [literally(literal)]}
        if least == 1 and most is None and literal:
            return f"has {what}", {"type": "TextMatch", "contains": literally(literal)}
        if most == 0:
            return f"has {none}", {"type": "Regex", "pattern": f"/{token}/{flags}u", "not": True}
        if least == 1 and most is None:
            return f"has {what}", {"type": "Regex", "pattern": f"/{token}/{flags}u"}
        if most is None:
            pattern = f"/\\A(?>[\\s\\S]*?{token}){{{least}}}/{flags}u"
            return f"has {what} at least {times_in_words(least or 0)}", {"type": "Regex", "pattern": pattern}
        if least is None:
            pattern = f"/\\A(?>[\\s\\S]*?{token}){{{int(most) + 1}}}/{flags}u"
            return f"has {what} at most {times_in_words(most)}", {"type": "Regex", "pattern": pattern, "not": True}
        times = f"{least}" if least == most else f"{least},{most}"
        # Possessive: what was counted is not given back, and nothing may follow.
        pattern = f"/\\A(?>(?:(?>[\\s\\S]*?{token})){{{times}}})(?![\\s\\S]*?{token})/{flags}u"
        words = f"exactly {times_in_words(least)}" if least == most else f"{least} to {most} times"
        return f"has {what} {words}", {"type": "Regex", "pattern": pattern}

    return say
