"""The codes of evidence and of results: one closed set, stored and published, so none ever changes its meaning.

A code says what holds or what is wrong, the fields beside it say of what. `grading.sentences` makes the words. Which
fields there are depends on what was checked; those that occur with several codes mean the same everywhere:

- `tool`, `call` (index of a tool call, from 0), `calls` (how many), `called` (names of tools, in the order of calls)
- `path` (where in a JSON value: a list of keys and indexes), `key`, `keys`, `argument`, `arguments`
- `side` (equals, contains, starts_with, ends_with), `pattern`, `line` and `lines` (from 1), `near` (the nearest miss)
- `measure` (what was counted or measured), `least`, `most` (the bounds), `count`, `amount`
- `template` (an entry of a list as the config has it, where it holds variables)
- `forbidden` (true: what was looked for must not be there), `empty` (true: there was nothing to look in)

What was asked for and what was found are `expected` and `found` of the evidence itself.
"""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """What a line of evidence, a metric's result or a criterion's result says."""

    # Something is there, or not.
    PRESENT = "present"
    """What was looked for is there. Of something forbidden that is the failure."""
    MISSING = "missing"
    """What was looked for is not there. Of something forbidden that is right."""
    EQUAL = "equal"
    """It is what was expected."""
    DIFFERS = "differs"
    """It is there, and has another value."""
    UNEXPECTED = "unexpected"
    """It is there, and was not expected."""
    OUT_OF_PLACE = "out_of_place"
    """It is there, but at another place than expected."""
    EMPTY = "empty"
    """There is nothing to look at."""

    # Tool calls.
    CALLED = "called"
    """A tool was called. Of a forbidden one that is the failure."""
    NOT_CALLED = "not_called"
    """A tool was not called, and need not or must not be."""
    NEVER_CALLED = "never_called"
    """A tool that is required was not called."""
    UNREADABLE = "unreadable"
    """The arguments of a call are not a JSON object."""

    # Counts and measures.
    WITHIN = "within"
    """A count or measure is within its bounds."""
    TOO_FEW = "too_few"
    TOO_MANY = "too_many"
    TOO_LOW = "too_low"
    TOO_HIGH = "too_high"
    MEASURED = "measured"
    """A count or measure that nothing is asked of."""
    NOT_MEASURED = "not_measured"
    """What a bound is given for was not measured: this cannot be checked."""

    # JSON.
    PARSES = "parses"
    NOT_JSON = "not_json"
    FITS = "fits"
    """The value fits the schema."""
    WRONG_TYPE = "wrong_type"
    NOT_A_CHOICE = "not_a_choice"
    OUT_OF_BOUNDS = "out_of_bounds"
    NO_MATCH = "no_match"
    """It does not match a pattern or a format."""
    BREAKS_RULE = "breaks_rule"
    """It breaks another rule of a schema: `rule` is the schema's keyword, `message` the validator's own words."""

    # Extraction.
    EMPTY_ANSWER = "empty_answer"
    NO_CODE_BLOCK = "no_code_block"
    UNCLOSED_CODE_BLOCK = "unclosed_code_block"
    NO_PATTERN_MATCH = "no_pattern_match"
    NOTHING_AT_PATH = "nothing_at_path"
    NO_LIST = "no_list"
    NOTHING_EXTRACTED = "nothing_extracted"
    """The prototype class found no value, and says no more."""
    VALUE_FOUND = "value_found"
    """A value was extracted, and no metric looks at it."""

    # What others say.
    LABELLED = "labelled"
    """A person decided."""
    REPLIED = "replied"
    """What a judge or an embedder replied."""
    RETURNED = "returned"
    """What a function returned."""
    WAITING = "waiting"
    """A person is to decide."""
    MESSAGE = "message"
    """A text that was handed over: by a plug-in, by another tool, or by a history that had no codes yet."""

    TRUSTED = "trusted"
    """A judge's verdict stands, since it is rarely wrong with such scores: the fields of `KEEPS_SILENT`."""
    KEEPS_SILENT = "keeps_silent"
    """A judge gives no verdict: its `score` lies above `above` and below `below` (on `scale`; null: on the whole side),
    where it is wrong more often than `error`. By `labels` people's labels; `needed`: enough labels; `unjudged`:
    labelled runs that this judge has not scored with this prompt."""

    # Of a criterion's or metric's result.
    CHECKS_NOTHING = "checks_nothing"
    THRESHOLD = "threshold"
    """The score decides, against `threshold`."""
    SCORE_UNKNOWN = "score_unknown"
    """A criterion without a score keeps the test's `threshold` from being checked."""
    NOT_FINISHED = "not_finished"
    """The agent did not finish: nothing is graded."""
    NO_VERDICT = "no_verdict"
    """Another tool gave none."""

    # Why a check could not run.
    BAD_CONFIG = "bad_config"
    UNKNOWN_VARIABLE = "unknown_variable"
    EMPTY_VARIABLE = "empty_variable"
    """What is looked for comes out of variables, and is empty: a hole in the data. `row`: the dataset's, from 1."""
    BAD_PLACEHOLDER = "bad_placeholder"
    BROKE = "broke"
    """The check raised an exception: `type` and `message`."""
    NOT_OBSERVED = "not_observed"
    """Whoever made the transcript could not see what is checked: the `kind` of thing, the code `note` of
    the note that says why, and its `what`."""
    UNREAD_PART = "unread_part"
    """The message has nothing but parts that could not be read: `what`."""
    NO_STATE = "no_state"
    """`probe` read nothing. `probes`: those that did; `nearest`: the one with the nearest name; `of`: when."""
    STATE_UNREAD = "state_unread"
    """The probe could not be read: `probe`; `of`: when; `problem`: a `ReadingProblem`, with its fields in `about`."""
    NO_SUCH_REQUEST = "no_such_request"
    """Request `at` (from 1; null: any) is not there: there are `requests`."""
    REQUEST_PART_UNKNOWN = "request_part_unknown"
    """A part of the requests was not recorded: `part` (system, tools)."""
    REQUEST_NOT_WHOLE = "request_not_whole"
    """The server keeps a part of the conversation that is not in the request: `number`, from 1."""
    REQUEST_NOT_COUNTED = "request_not_counted"
    """The tokens of request `number` (from 1) are not known; 0: a part of a request, or its output."""
    SLOW_PATTERN = "slow_pattern"
    UNCHECKED_FORMAT = "unchecked_format"
    """A schema asks for a format that is not known."""
    SLOW_SCHEMA = "slow_schema"
    TOO_LARGE = "too_large"
    """There is more than can be looked at."""
    TOO_DEEP = "too_deep"
    UNREADABLE_NUMBER = "unreadable_number"
    PATH_FAILED = "path_failed"
    UNRESOLVED_REFERENCE = "unresolved_reference"
    NO_EXPECTED_VALUE = "no_expected_value"
    NO_SYSTEM_PROMPT = "no_system_prompt"
    NO_WORDS = "no_words"
    NOT_A_LIST = "not_a_list"
    NOT_ASKED = "not_asked"
    NOT_ASKED_THIS = "not_asked_this"
    ASKING_FAILED = "asking_failed"
    """Whoever was asked did not answer: `message` is why."""
    UNREADABLE_REPLY = "unreadable_reply"
    OFF_SCALE = "off_scale"
    NO_SCORE = "no_score"
    NOTHING_TO_SEE = "nothing_to_see"
    NO_CONTEXT = "no_context"
    """A judge's prompt asks for what the answer may rest on, and neither the row nor the recording has it."""
    UNUSABLE_LABEL = "unusable_label"
    UNUSABLE_RETURN = "unusable_return"
    UNUSABLE_VECTOR = "unusable_vector"
    UNUSABLE_REPLY = "unusable_reply"
    """A reply that a plug-in could not use: `message` is why."""
