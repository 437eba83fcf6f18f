"""What exactly kept an agent from finishing: a closed set, finer than an error's kind.

Errors are told apart and grouped by these and by their fields, never by their sentences (`grading.causes`). A code
stays what it is: histories hold it, and decisions are made about it.
"""

from __future__ import annotations

from enum import StrEnum


class ErrorCode(StrEnum):
    """Why an agent did not finish. Each code lists its fields; `fingerprint` is one of foreign text."""

    TOLD = "told"  # an agent, a program, a server or a file said it in words of its own: fingerprint

    # The connection.
    NO_CONNECTION = "no_connection"  # why: unknown_host, lookup_failed, refused, no_route, closed
    CONNECT_TIMEOUT = "connect_timeout"
    REQUEST_TIMEOUT = "request_timeout"
    CLOSED_WITHOUT_ANSWER = "closed_without_answer"
    CUT_OFF = "cut_off"
    PROXY_UNREACHABLE = "proxy_unreachable"  # why: as of no_connection, or no_answer
    PROXY_PASSWORD = "proxy_password"  # noqa: S105 - no password, but that one is wanted
    TLS_EXPECTED = "tls_expected"
    NO_TLS = "no_tls"
    NOT_HTTP = "not_http"
    CERTIFICATE = "certificate"  # why: expired, not_yet_valid, other_host, self_signed, unknown_authority

    # What a server answers.
    STATUS = "status"  # status
    REDIRECT = "redirect"
    KEY_REFUSED = "key_refused"
    NO_PERMISSION = "no_permission"
    REGION = "region"
    NO_EMBEDDING = "no_embedding"
    NOT_AN_OBJECT = "not_an_object"
    TOO_LONG = "too_long"
    SILENCE = "silence"  # after: first_token, silence
    KEY_MISSING = "key_missing"  # variable

    # The agent, its program, and what runs it.
    NO_PROMPT = "no_prompt"
    MAX_STEPS = "max_steps"
    EXIT = "exit"  # status
    INPUT_ENDED = "input_ended"  # a program read on after the prompt, which was all there is: status
    NO_ANSWER = "no_answer"
    NOT_RECORDED = "not_recorded"  # a run from its recording asks something else: request (from 1), at, change
    PROMPT_ONLY = "prompt_only"  # it can't be told the answers that the conversation has already
    NOT_DONE = "not_done"  # it stopped without saying that it was done
    RUN_TIMEOUT = "run_timeout"
    CANCELLED = "cancelled"
    HOOK = "hook"  # a hook failed: phase, hook, why (exit, timeout, start, output, raised), status
    SERVICE = "service"  # a service that the run needs: service, why (exit, timeout, start, port)
    WORKDIR = "workdir"  # the run's working folder can't be made: why
    ENDING = "ending"  # ending: what `error_on_finish` names
    WORKER_LOST = "worker_lost"
    SCHEDULER_LOST = "scheduler_lost"
    NO_REASON = "no_reason"  # no reason was given

    # The simulated user: nothing that the agent did.
    USER_FAILED = "user_failed"  # its agent did not answer: why (a code of this list)
    USER_SILENT = "user_silent"  # it said nothing: when: opening, answer
    USER_TIMEOUT = "user_timeout"  # the run's time was over while it was asked
