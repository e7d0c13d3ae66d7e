"""Worker processes, kept warm, and ended when a statement can't be stopped any other way.

A call takes an idle worker and gives it back. A worker that has not answered shortly after its deadline, or shortly
after a cancel, is killed: that limits even single opcodes that SQLite cannot interrupt.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup

from mcp_batteries.errors import Problem, Unavailable
from mcp_sqlite.engine.worker_process import DatabaseLocked, ProcessExited, Worker, WorkerDied, raise_for_error

__all__ = ["Remainder", "WorkerPool"]

logger = logging.getLogger(__name__)

_LATE_SECONDS = 0.5
"""How long behind its deadline a worker may still say that the statement was stopped."""
_CANCEL_SECONDS = 0.03
_LEAST_SECONDS = 0.05
"""What a call gets that had its turn at the last moment."""
_PATIENCE_SECONDS = 5.0
"""How long a call waits for a lock of somebody else's at most, and never longer than its share of the call's time."""
_PATIENCE_SHARE = 0.4
_PAUSES = (0.01, 0.02, 0.05, 0.1)
"""Seconds until a locked database is asked again; meanwhile the worker is free for others."""
_MOST_IDLE = 2
_LINGER_SECONDS = 5.0
"""How long those beyond that stay: each call of a burst would start a process, which takes longer than most calls."""
_CHANGES = ("back_up", "change", "export", "import")
"""What is not tried again when its worker died."""

_UNKNOWN = "Whether it was done is not known: look before you try again."


class WorkerPool:
    """Worker processes for as long as `running` is entered.

    Args:
        seconds: a statement's time limit.
        most: workers that answer calls at once.
        options: what the operator asked for, as each worker is told it.
    """

    def __init__(self, *, seconds: float, most: int, options: Sequence[str] = ()) -> None:
        self._options = options
        self.seconds = seconds
        self._most = most
        self._blocks: list[TaskGroup] = []
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._own: dict[str, Worker] = {}
        self._thinning = False
        self._warming: anyio.Event | None = None
        """Set when the worker that is being started is there, or is not to be expected any more."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Have a worker warm while the block lasts; no process outlives the last block."""
        if not self._blocks:
            self._slots = anyio.Semaphore(self._most, fast_acquire=True)
            self._own_turns: dict[str, anyio.Lock] = {}
        async with anyio.create_task_group() as tasks:
            self._blocks.append(tasks)
            tasks.start_soon(self._warm)
            try:
                yield
            finally:
                self._blocks.remove(tasks)
                tasks.cancel_scope.cancel()
        if not self._blocks:
            for worker in [*self._idle, *self._busy, *self._own.values()]:
                await worker.kill()
            self._idle.clear()
            self._busy.clear()
            self._own.clear()

    async def call(
        self, request: Mapping[str, Any], *, seconds: float | None = None, patience: float | None = None
    ) -> dict[str, Any]:
        """The first frame that answers `request`; whatever comes behind it is awaited in the background.

        Args:
            patience: seconds to wait for a lock of somebody else's.

        Raises:
            Problem: the worker refuses, was stopped at the time limit, or died.
        """
        reply, _ = await self.call_for_pages(request, seconds=seconds, patience=patience)
        return reply

    async def call_for_pages(
        self, request: Mapping[str, Any], *, seconds: float | None = None, patience: float | None = None
    ) -> tuple[dict[str, Any], Remainder | None]:
        """Like `call`, with what follows the first frame, if anything does."""
        limit = self.seconds if seconds is None else seconds
        begun = anyio.current_time()
        patience = min(_PATIENCE_SECONDS, limit * _PATIENCE_SHARE) if patience is None else patience
        fresh = False
        for pause in itertools.chain(_PAUSES, itertools.repeat(_PAUSES[-1])):
            try:
                return await self._try(request, limit, begun + limit, fresh=fresh)
            except WorkerDied:
                if fresh or request["do"] in _CHANGES:
                    raise
                fresh = True  # perhaps it was dead already
            except DatabaseLocked as locked:
                waited = anyio.current_time() - begun
                if waited >= patience:
                    raise Unavailable(f"{locked.what}, for at least {waited:.1f} s.", locked.fix) from None
                await anyio.sleep(pause)
        raise AssertionError

    async def _try(
        self, request: Mapping[str, Any], limit: float, until: float, *, fresh: bool = False
    ) -> tuple[dict[str, Any], Remainder | None]:
        await self._turn(limit, until)
        worker: Worker | None = None
        handed_on = False
        try:
            worker = await self._worker(fresh=fresh)
            self._busy.add(worker)
            seconds = max(_LEAST_SECONDS, until - anyio.current_time())
            frame = await self._ask(worker, request, seconds, limit)
            if frame.get("end"):
                return raise_for_error(frame), None
            rest = Remainder()
            self._blocks[-1].start_soon(self._await_rest, worker, rest, seconds)
            handed_on = True
            return frame, rest
        finally:
            if not handed_on:
                await self._give_back(worker)

    async def _worker(self, *, fresh: bool) -> Worker:
        if not fresh and not self._idle and self._warming is not None:
            await self._warming.wait()
        return self._idle.pop() if self._idle and not fresh else await Worker.start(self._options)

    async def _turn(self, limit: float, until: float) -> None:
        try:
            self._slots.acquire_nowait()
            return
        except anyio.WouldBlock:
            pass
        # Waiting for a worker is a part of the call's time.
        with anyio.move_on_after(until - anyio.current_time()):
            await self._slots.acquire()
            return
        raise Unavailable(
            f"All {self._most} workers were busy for the whole time limit of {limit:g} s.", "Try again, fewer at once."
        )

    async def call_dedicated(self, owner: str, request: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
        """Like `call`, always on the same worker while it lives: one that remembers."""
        async with self._own_turns.setdefault(owner, anyio.Lock()):
            worker = self._own.pop(owner, None)
            if worker is None or not worker.is_alive:
                worker = await Worker.start(self._options)
            try:
                self._busy.add(worker)
                return raise_for_error(await self._ask(worker, request, seconds, seconds))
            finally:
                self._busy.discard(worker)
                if worker.is_alive and self._blocks:
                    self._own[owner] = worker
                else:
                    await worker.kill()

    async def _ask(self, worker: Worker, request: Mapping[str, Any], seconds: float, limit: float) -> dict[str, Any]:
        """The first answer of `worker`, which has `seconds` left of the `limit` there was."""
        answered = False
        changes = request["do"] in _CHANGES
        try:
            worker.send({**request, "seconds": seconds})
            frame = await worker.receive(seconds + _LATE_SECONDS)
            if frame is not None:
                answered = True
                return frame
            raise Unavailable(
                f"SQLite did not stop at the time limit of {limit:g} s; its process was ended.",
                _UNKNOWN if changes else "Ask for less.",
            )
        except anyio.get_cancelled_exc_class():
            answered = await self._interrupted(worker)
            raise
        except ProcessExited:
            raise WorkerDied(
                "SQLite's process ended in the middle of the statement.",
                _UNKNOWN if changes else "Other calls still work.",
            ) from None
        finally:
            if not answered:
                await worker.kill()

    async def _interrupted(self, worker: Worker) -> bool:
        """Whether `worker` has stopped what it did, and can be used again."""
        until = anyio.current_time() + _CANCEL_SECONDS
        with anyio.CancelScope(shield=True):
            try:
                worker.send({"cancel": True})
                while (frame := await worker.receive(until - anyio.current_time())) is not None:
                    if frame.get("end"):
                        return True
            except ProcessExited:
                pass
        return False

    async def _await_rest(self, worker: Worker, rest: Remainder, seconds: float) -> None:
        finished = False
        try:
            if (frame := await worker.receive(seconds + _LATE_SECONDS)) is not None:
                rest.stopped = frame["error"][1] if "error" in frame else frame.get("stopped")
                finished = True
        except ProcessExited:
            pass
        finally:
            if not finished:
                rest.stopped = "the query was stopped at its time limit"
                await worker.kill()
            rest.done.set()
            await self._give_back(worker)

    async def _give_back(self, worker: Worker | None) -> None:
        self._slots.release()
        if worker is None:
            return
        self._busy.discard(worker)
        if not worker.is_alive:
            if self._blocks and not self._idle:
                self._blocks[-1].start_soon(self._warm)
        elif self._blocks:
            self._idle.append(worker)
            if len(self._idle) > _MOST_IDLE and not self._thinning:
                self._thinning = True
                self._blocks[-1].start_soon(self._thin)
        else:
            await worker.kill()

    async def _thin(self) -> None:
        try:
            await anyio.sleep(_LINGER_SECONDS)
        finally:
            self._thinning = False
        while len(self._idle) > _MOST_IDLE:
            await self._idle.pop(0).kill()

    async def _warm(self) -> None:
        if self._warming is not None:
            return
        started = self._warming = anyio.Event()
        try:
            worker = await Worker.start(self._options)
        except Problem as problem:
            logger.warning("No worker is kept warm: %s", problem)
            return
        finally:
            self._warming = None
            started.set()
        if len(self._idle) < _MOST_IDLE and self._blocks:
            self._idle.append(worker)
        else:
            await worker.kill()


class Remainder:
    """What a worker does behind its first frame.

    Attributes:
        done: set when it has ended.
        stopped: why before its end, in words; None if it came to its end.
    """

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.stopped: str | None = None
