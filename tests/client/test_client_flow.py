"""The flow alone: what it asks for, step by step, and what it makes of the answers."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from laurels.client import NotUnderstood, Refused, Retries, Submission, Unreachable
from laurels.client.call import Caller
from laurels.client.operations import ClientOperations
from laurels.client.steps import Lost, Pause, Reply, Send, Take
from laurels.errors import (
    BadSignature,
    Conflict,
    Forbidden,
    InvalidInput,
    LaurelsError,
    NotFound,
    OutcomeUnknown,
    RateLimited,
    StaleCursor,
    Unauthorized,
    Unavailable,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from laurels.client.steps import Flow, Step
    from laurels.valkey.messages import Durability

SUBMITTED = {
    "member": "ada", "score": 5, "previous_score": None, "rank": 1, "previous_rank": None, "applied": True,
    "id": "1",
}  # fmt: skip
LOST = Lost("ReadError")


class Clock:
    """Goes on by what is waited."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Played:
    """A flow, played to its end with these replies."""

    def __init__(self, flow: Flow[Any], *replies: Reply | Lost, clock: Clock | None = None) -> None:
        self.sent: list[Send] = []
        self.pauses: list[float] = []
        self.answer: Any = None
        self.error: LaurelsError | None = None
        waiting = list(replies)
        given = [Submission("ada", 5)]
        try:
            step: Step = next(flow)
            while True:
                reply: Reply | Lost | list[Submission] | None = None
                if isinstance(step, Pause):
                    self.pauses.append(step.seconds)
                    if clock:
                        clock.now += step.seconds
                elif isinstance(step, Send):
                    self.sent.append(step)
                    reply = waiting.pop(0)
                elif isinstance(step, Take):
                    reply, given = given, []
                step = flow.send(reply)
        except StopIteration as end:
            self.answer = end.value
        except LaurelsError as error:
            self.error = error
        assert waiting == []


def reply(status: int, content: object = None) -> Reply:
    return Reply(status, {}, b"" if content is None else json.dumps(content).encode())


def problem(status: int, kind: str, **more: object) -> Reply:
    content = {
        "type": f"/problems/{kind}",
        "title": "",
        "status": status,
        "detail": "because",
        "request_id": "r-1",
    }
    return Reply(status, {}, json.dumps({**content, **more}).encode())


def operations(clock: Clock | None = None, secret: str | None = None, **retries: object) -> ClientOperations:
    """Whose pauses are as long as they may be."""
    patience = replace(Retries(chance=lambda: 1.0, clock=clock or Clock()), **retries)
    return ClientOperations(Caller("a-key", secret, retries=patience), "arcade")


def ids_of(played: Played) -> list[str]:
    return [json.loads(send.request.body or b"")["id"] for send in played.sent]


@pytest.mark.parametrize("passing", [LOST, reply(502), reply(503), reply(504), problem(429, "rate-limited")])
def test_what_passes_is_tried_again_under_the_same_id(passing: Reply | Lost):
    played = Played(operations().submit("b", "ada", 5), passing, passing, reply(200, SUBMITTED))
    assert played.answer.rank == 1
    first, *others = ids_of(played)
    assert len(first) == 32
    assert others == [first, first]


def test_an_id_that_was_given_is_kept():
    played = Played(operations().submit("b", "ada", 5, id="game-1"), LOST, reply(200, SUBMITTED))
    assert ids_of(played) == ["game-1", "game-1"]


def test_each_submission_has_another_id():
    both = [Played(operations().submit("b", "ada", 5), reply(200, SUBMITTED)) for _ in range(2)]
    assert ids_of(both[0]) != ids_of(both[1])


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (problem(400, "malformed"), Refused),
        (problem(401, "unauthorized"), Unauthorized),
        (problem(401, "bad-signature"), BadSignature),
        (problem(403, "forbidden"), Forbidden),
        (problem(404, "not-found"), NotFound),
        (problem(409, "conflict"), Conflict),
        (problem(413, "too-large"), Refused),
        (problem(422, "invalid-input"), InvalidInput),
        (problem(422, "stale-cursor"), StaleCursor),
        (problem(500, "internal"), LaurelsError),
        (problem(418, "of-a-later-version"), Refused),
        (reply(404, {"detail": "no page of ours"}), Refused),
        (reply(307, "elsewhere"), NotUnderstood),
        (reply(200, {"this": "is no page"}), NotUnderstood),
    ],
)
def test_what_is_final_is_raised_at_once(answer: Reply, kind: type[LaurelsError]):
    played = Played(operations().page("b"), answer)
    assert type(played.error) is kind
    assert played.pauses == []


def test_fields_come_with_the_error():
    wrong = {"errors": [{"field": "score", "detail": "must be a number"}]}
    played = Played(operations().submit("b", "ada", "x"), problem(422, "invalid-input", **wrong))
    assert isinstance(played.error, InvalidInput)
    assert [(field.field, field.detail) for field in played.error.fields] == [("score", "must be a number")]


def test_the_message_names_the_request():
    played = Played(operations().page("b"), problem(404, "not-found"))
    assert str(played.error) == "because (request r-1)"


def test_the_message_of_what_was_never_answered_names_the_request_too():
    played = Played(operations(attempts=1).page("b"), LOST)
    assert isinstance(played.error, Unreachable)
    assert f"(request {played.sent[0].request.headers['X-Request-Id']})" in str(played.error)


def test_other_refusals_say_which_they_are():
    played = Played(operations().page("b"), problem(413, "too-large"))
    assert isinstance(played.error, Refused)
    assert (played.error.problem, played.error.answered) == ("too-large", 413)


def test_pauses_double_up_to_the_longest():
    played = Played(operations(attempts=6, first_pause=1.0, longest_pause=5.0).page("b"), *[LOST] * 6)
    assert played.pauses == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert isinstance(played.error, Unreachable)


def test_chance_decides_how_much_of_a_pause_is_waited():
    parts = iter([0.0, 0.5, 0.25, 1.0])
    asked = operations(attempts=4, first_pause=1.0, chance=lambda: next(parts))
    assert Played(asked.page("b"), *[LOST] * 4).pauses == [0.0, 1.0, 1.0]


def test_retry_after_is_waited_and_more():
    limited = Reply(429, {"retry-after": "7"}, problem(429, "rate-limited").body)
    played = Played(operations().page("b"), limited, reply(404))
    assert played.pauses == [7.1]


def test_retry_after_may_be_a_date():
    dates = {"date": "Fri, 24 Oct 2025 12:00:00 GMT", "retry-after": "Fri, 24 Oct 2025 12:00:09 GMT"}
    played = Played(operations().page("b"), Reply(503, dates, b""), reply(404))
    assert played.pauses == [9.1]


@pytest.mark.parametrize("nonsense", ["soon", "-1", "1.5", "²", ""])
def test_a_retry_after_that_says_nothing_is_left_alone(nonsense: str):
    played = Played(operations().page("b"), Reply(503, {"retry-after": nonsense}, b""), reply(404))
    assert played.pauses == [0.1]


def test_a_limit_that_outlasts_the_retries_says_when_to_go_on():
    limited = Reply(429, {"retry-after": "3600"}, problem(429, "rate-limited").body)
    played = Played(operations().page("b"), limited)
    assert isinstance(played.error, RateLimited)
    assert played.error.retry_after == 3600
    assert played.pauses == []


def test_no_try_begins_after_the_deadline():
    clock = Clock()
    asked = operations(clock, attempts=100, deadline=10.0, first_pause=3.0, longest_pause=3.0)
    played = Played(asked.page("b"), *[LOST] * 4, clock=clock)
    assert clock.now == 1009.0
    assert isinstance(played.error, Unreachable)


def test_a_try_gets_no_more_time_than_there_is_left():
    clock = Clock()
    asked = operations(clock, deadline=10.0, first_pause=4.0)
    played = Played(asked.page("b"), LOST, reply(404), clock=clock)
    assert [send.timeout for send in played.sent] == [10.0, 6.0]


def test_a_submission_that_may_have_counted_says_how_to_repeat_it():
    away = problem(503, "unavailable")
    played = Played(operations(attempts=2).submit("b", "ada", 5), LOST, away)
    assert type(played.error) is OutcomeUnknown
    assert played.error.retry_with == ids_of(played)[0]


def test_a_submission_that_was_refused_twice_did_not_count():
    away = problem(503, "unavailable")
    played = Played(operations(attempts=2).submit("b", "ada", 5), away, away)
    assert type(played.error) is Unavailable


def test_a_question_whose_answers_are_lost_has_no_outcome():
    played = Played(operations(attempts=2).among("b", ["ada"]), LOST, problem(503, "unavailable"))
    assert type(played.error) is Unavailable


def test_an_unknown_outcome_is_tried_again():
    unknown = problem(503, "outcome-unknown", retry_with="game-1")
    played = Played(operations().submit("b", "ada", 5, id="game-1"), unknown, reply(200, SUBMITTED))
    assert played.answer.applied
    assert ids_of(played) == ["game-1", "game-1"]


def test_what_is_gone_after_a_lost_answer_was_dropped():
    played = Played(operations().drop("b"), LOST, problem(404, "not-found"))
    assert played.error is None
    assert isinstance(Played(operations().drop("b"), problem(404, "not-found")).error, NotFound)


def test_a_member_that_is_gone_after_a_lost_answer_was_removed():
    played = Played(operations().remove("b", "ada"), LOST, problem(404, "not-found"))
    assert played.answer is True


def test_the_key_goes_with_every_request_and_stays_out_of_sight():
    played = Played(operations().page("b"), reply(404))
    assert played.sent[0].request.headers["Authorization"] == "Bearer a-key"
    assert "a-key" not in repr(Caller("a-key", "a-secret"))
    assert "a-secret" not in repr(Caller("a-key", "a-secret"))


def test_one_call_has_one_request_id():
    played = Played(operations().page("b"), LOST, reply(404))
    assert len({send.request.headers["X-Request-Id"] for send in played.sent}) == 1


SUBMITTING: dict[str, Callable[[ClientOperations], Any]] = {
    "scores": lambda operations: operations.submit("b", "ada", 5),
    "matches": lambda operations: operations.match("b", ["ada", "bob"], "ada"),
    "scores/batch": lambda operations: operations.submit_many("b", []),
}


@pytest.mark.parametrize("path", SUBMITTING)
def test_every_try_of_a_submission_is_signed_anew(path: str):
    played = Played(SUBMITTING[path](operations(secret="between-us")), LOST, reply(404))
    assert len(played.sent) == 2
    for send in played.sent:
        headers, body = send.request.headers, send.request.body or b""
        lines = ("v2", "POST", f"/v1/projects/arcade/boards/b/{path}", headers["X-Laurels-Timestamp"],
                 headers["X-Laurels-Nonce"], "", hashlib.sha256(body).hexdigest())  # fmt: skip
        expected = hmac.new(b"between-us", "\n".join(lines).encode(), hashlib.sha256).hexdigest()
        assert headers["X-Laurels-Signature"] == f"v2={expected}"
    assert len({send.request.headers["X-Laurels-Nonce"] for send in played.sent}) == 2


@pytest.mark.parametrize("durability", ["fast", "fsync", "replicated"])
def test_durability_is_asked_for(durability: Durability):
    submitted = Played(operations().submit("b", "ada", 5, durability=durability), reply(200, SUBMITTED))
    removed = Played(operations().remove("b", "ada", durability=durability), reply(204))
    for played in (submitted, removed):
        assert played.sent[0].request.headers["Laurels-Durability"] == durability
    assert "Laurels-Durability" not in Played(operations().drop("b"), reply(204)).sent[0].request.headers


def test_questions_are_not_signed():
    played = Played(operations(secret="between-us").page("b"), reply(404))
    assert "X-Laurels-Signature" not in played.sent[0].request.headers


@pytest.mark.parametrize(
    ("flow", "path"),
    [
        (operations().page("b"), "/v1/projects/arcade/boards/b/entries"),
        (operations().page("other/b"), "/v1/projects/other/boards/b/entries"),
        (
            operations().page("b", start="bottom", limit=5, change=True, slot=None, group="country=a%2Cb"),
            "/v1/projects/arcade/boards/b/entries?from=bottom&limit=5&change=true&group=country%3Da%252Cb",
        ),
        (operations().standing("b", "x/around"), "/v1/projects/arcade/boards/b/entries/x%2Faround"),
        (operations().standing("b", ".."), "/v1/projects/arcade/boards/b/entries/%2E%2E"),
        (operations().standing("b", "a.b"), "/v1/projects/arcade/boards/b/entries/a.b"),
    ],
)
def test_names_and_questions_are_encoded(flow: Flow[Any], path: str):
    assert Played(flow, reply(404)).sent[0].request.path == path


@pytest.mark.parametrize("name", ["a/b/c", "", "/b", "no spaces"])
def test_names_that_no_board_can_have_are_refused_before_anything_is_sent(name: str):
    assert isinstance(Played(operations().definition(name)).error, InvalidInput)


def test_a_board_needs_a_project():
    played = Played(ClientOperations(Caller()).definition("b"))
    assert isinstance(played.error, InvalidInput)


@pytest.mark.parametrize("member", ["", "\ud800", "x" * 257])
def test_members_that_no_path_can_name_are_refused_before_anything_is_sent(member: str):
    with pytest.raises(InvalidInput):
        Played(operations().standing("b", member))
