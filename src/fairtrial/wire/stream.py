"""One stream to an agent: requests matched with answers, pings, silence, and its loss told to everyone who waits."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable
from typing import Protocol

from fairtrial.errors import AgentError, StreamLostError
from fairtrial.protocol import generated as wire
from fairtrial.wire.limits import Limits
from fairtrial.wire.messages import Answer, FrameError, Frames, Request, request_frame
from fairtrial.wire.transport import Transport

HINT = "check whether the place is up and the agent was killed; the next agent to start there restores its settings"
ANSWERS_KEPT = 64  # chunks of a file whose reader is slower than its place: 4 MiB
ROOM_EVERY_S = 1.0
TRIED_AGAIN = "the next `fairtrial run` or `fairtrial doctor` at this place tries again; or restore them by hand"


class Follower(Protocol):
    """Who is told about a process. All calls come from the stream's own thread."""

    def started(self, spawned: wire.Spawned) -> None:
        """It runs."""

    def wrote(self, line: wire.OutputLine) -> None:
        """It wrote a line."""

    def ended(self, exited: wire.Exited) -> None:
        """It ended; all its lines came before."""

    def lost(self, error: StreamLostError) -> None:
        """Nothing more will be heard of it."""


class PendingAnswers:
    """The answers to one request, as they come; at most `ANSWERS_KEPT` wait to be taken."""

    def __init__(self, follower: Follower | None) -> None:
        self.follower = follower
        self._answers: queue.SimpleQueue[Answer | bytes | StreamLostError] = queue.SimpleQueue()
        self._room = threading.Semaphore(ANSWERS_KEPT)
        self._complete = False

    def put(self, answer: Answer | bytes, *, waiting: Callable[[], None]) -> None:
        """Hands an answer over, once there is room for it; `waiting` is called again and again until then."""
        while not self._complete and not self._room.acquire(timeout=ROOM_EVERY_S):
            waiting()
        if not self._complete:
            self._answers.put(answer)

    def lose(self, loss: StreamLostError) -> None:
        """Hands the loss over, behind what came before."""
        self._answers.put(loss)
        self.complete()

    def complete(self) -> None:
        """Nothing more is kept; who waits for room goes on."""
        self._complete = True
        self._room.release()

    def take(self, timeout_s: float | None = None) -> Answer | bytes:
        """Waits for the next answer or chunk.

        Raises:
            AgentError: the agent could not do it.
            StreamLostError: the stream ended first.
            TimeoutError: nothing came in time.
        """
        try:
            answer = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError(f"no answer within {timeout_s:g} s") from None
        self._room.release()
        if isinstance(answer, StreamLostError):
            raise _again(answer)
        if isinstance(answer, wire.Failed):
            raise AgentError(answer.message, code=answer.code, hint=answer.hint or "see the message above")
        return answer


def _again(error: StreamLostError) -> StreamLostError:
    """The same loss for another waiting call: one exception raised in two threads would mix their tracebacks."""
    return StreamLostError(str(error), hint=error.hint)


class Stream:
    """Sends requests and hands answers to who asked.

    Attributes:
        reported: whether its loss was told to a call, or to who follows a process.
    """

    def __init__(self, transport: Transport, *, limits: Limits) -> None:
        self._transport = transport
        self._limits = limits
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._pending: dict[int, PendingAnswers] = {}
        self._followers: dict[int, Follower] = {}
        self._loss: StreamLostError | None = None
        self.reported = False
        self._over = threading.Event()
        self._heard = time.monotonic()
        self._reader = threading.Thread(target=self._read, name="fairtrial-wire-read", daemon=True)
        self._pinger = threading.Thread(target=self._ping, name="fairtrial-wire-ping", daemon=True)
        self._reader.start()
        self._pinger.start()

    def number(self) -> int:
        """A number for a request."""
        return next(self._numbers)

    def ask(self, request: Request, *, follower: Follower | None = None) -> PendingAnswers:
        """Sends a request.

        Raises:
            StreamLostError: the stream has ended.
        """
        pending = PendingAnswers(follower)
        with self._lock:
            self._refuse_lost()
            self._pending[request.id] = pending
        # A loss from here on is put behind the answer: a short-lived agent answers and ends before `write` returns.
        self._write(request_frame(request))
        return pending

    def send(self, frame: bytes) -> None:
        """Sends bytes that make a whole frame.

        Raises:
            StreamLostError: the stream has ended.
        """
        self._write(frame)
        self._refuse_lost()

    def _refuse_lost(self) -> None:
        if self._loss is not None:
            self.reported = True
            raise _again(self._loss)

    def _write(self, frame: bytes) -> None:
        try:
            self._transport.write(frame)
        except OSError as error:
            self.lose(f"the agent no longer accepts requests ({error})")

    def forget(self, request: Request) -> None:
        """Its answer is complete."""
        with self._lock:
            pending = self._pending.pop(request.id, None)
        if pending is not None:
            pending.complete()

    def lose(self, reason: str) -> None:
        """The stream has ended: tells everyone who waits, at once."""
        said = self._transport.said()
        with self._lock:
            if self._loss is not None:
                return
            self._loss = StreamLostError(f"{reason}: {said}" if said else reason, hint=HINT)
            waiting, followers = list(self._pending.values()), list(self._followers.values())
            self.reported = bool(waiting or followers)
        self._over.set()
        for pending in waiting:
            pending.lose(self._loss)
        for follower in followers:
            follower.lost(_again(self._loss))

    def close(self) -> None:
        """Ends the stream and its threads."""
        self.lose("the stream was closed")
        self._transport.close()
        for thread in (self._reader, self._pinger):
            if thread is not threading.current_thread():
                thread.join()

    def _hear(self) -> None:
        """Whoever is not listened to for a while is not silent."""
        self._heard = time.monotonic()

    def _read(self) -> None:
        try:
            for frame in Frames(self._transport):
                self._hear()
                if isinstance(frame, tuple):
                    self._hand_over(frame[0], frame[1])
                else:
                    self._dispatch(frame)
            self.lose("the agent ended the stream")
        except (FrameError, OSError, ValueError) as error:
            self.lose(f"the stream broke: {error}")

    def _dispatch(self, event: Answer | wire.OutputLine | wire.Exited) -> None:
        match event:
            case wire.OutputLine():
                self._tell(event.process, lambda follower: follower.wrote(event))
            case wire.Exited():
                self._tell(event.process, lambda follower: follower.ended(event))
                self._followers.pop(event.process, None)
            case wire.Failed(id=None):
                self.lose(f"the agent did not understand a request: {event.message}")
            case _:
                self._hand_over(event.id or 0, event)

    def _hand_over(self, number: int, answer: Answer | bytes) -> None:
        with self._lock:
            pending = self._pending.get(number)
            if pending is not None and isinstance(answer, wire.Spawned) and pending.follower is not None:
                self._followers[answer.process] = pending.follower
        if pending is not None:
            if isinstance(answer, wire.Spawned) and pending.follower is not None:
                pending.follower.started(answer)
            pending.put(answer, waiting=self._hear)

    def _tell(self, process: int, what: Callable[[Follower], None]) -> None:
        follower = self._followers.get(process)
        if follower is not None:
            what(follower)

    def _ping(self) -> None:
        # A blocked write must not stop the watch over silence, so pings have a thread of their own on top.
        every = self._limits.ping_every_s
        sender = threading.Thread(target=self._send_pings, args=(every,), name="fairtrial-wire-pings", daemon=True)
        sender.start()
        warned = False
        while not self._over.wait(every):
            silent_s = time.monotonic() - self._heard
            silent = silent_s > self._limits.silence_s
            if silent and warned:
                self.lose(f"the agent was silent for {silent_s:.0f} s")
                self._transport.close()
            warned = silent  # a machine that stood still has heard nothing either: one more ping may be answered
        sender.join()

    def _send_pings(self, every: float) -> None:
        while not self._over.wait(every):
            try:
                self._transport.write(request_frame(wire.Ping(id=self.number())))
            except OSError:
                return  # no loss yet: what the agent last said may still be on its way; else the silence is one
