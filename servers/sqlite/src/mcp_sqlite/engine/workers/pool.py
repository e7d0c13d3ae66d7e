"""Worker processes, kept warm, and ended when a statement can't be stopped any other way.

A call takes an idle worker and gives it back. A worker that has not answered shortly after its deadline, or shortly
after a cancel, is killed: that limits even single opcodes that SQLite cannot interrupt.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskGroup

from mcp_batteries.errors import Problem, Unavailable
from mcp_sqlite.engine.workers.launcher import WorkerLauncher, identify_folders
from mcp_sqlite.engine.workers.lock_holder import find_lock_holder
from mcp_sqlite.engine.workers.process import DatabaseLocked, ProcessExited, Worker, WorkerDied, raise_for_error

__all__ = ["LONG_OPERATION_LIMITS", "Remainder", "WorkerPool"]

logger = logging.getLogger(__name__)

# Time limits that what reads or writes a whole database may take: a check, a copy, an import, an export.
LONG_OPERATION_LIMITS = 10
# How long behind its deadline a worker may still say that the statement was stopped.
_LATE_SECONDS = 0.5
_CANCEL_SECONDS = 0.03
# What a call gets that had its slot at the last moment.
_MIN_CALL_SECONDS = 0.05
# How long a call waits for a lock of somebody else's at most, and never longer than its share of the call's time.
_LOCK_WAIT_SECONDS = 5.0
_LOCK_WAIT_SHARE = 0.4
# Seconds until a locked database is asked again; meanwhile the worker is free for others.
_LOCK_PAUSES = (0.01, 0.02, 0.05, 0.1)
_MAX_IDLE = 2
# How long those beyond that stay: each call of a burst would start a process, which takes longer than most calls.
_LINGER_SECONDS = 5.0
# What is not tried again when its worker died.
_CHANGES = ("back_up", "change", "export", "import")
_UNKNOWN_OUTCOME = "Whether it was done is not known: look before you try again."


class Remainder:
    """What a worker does behind its first frame.

    Attributes:
        done: set when it has ended.
        stopped: why before its end, in words; None if it came to its end.
    """

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.stopped: str | None = None


class Reply(NamedTuple):
    """The first frame of an answer, and what follows it, if anything does."""

    frame: dict[str, Any]
    remainder: Remainder | None


class WorkerPool:
    """Worker processes for as long as `running` is entered.

    Args:
        launcher: starts the workers.
        seconds: a statement's time limit.
        max_workers: workers that answer calls at once.
    """

    def __init__(self, launcher: WorkerLauncher, *, seconds: float, max_workers: int) -> None:
        self._launcher = launcher
        self.seconds = seconds
        self._max_workers = max_workers
        self._task_groups: list[TaskGroup] = []
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._dedicated: dict[str, Worker] = {}
        self._is_thinning = False
        # Set when the worker that is being started is there, or is not to be expected any more.
        self._warming: anyio.Event | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Have a worker warm while the block lasts; no process outlives the last block."""
        if not self._task_groups:
            self._slots = anyio.Semaphore(self._max_workers, fast_acquire=True)
            self._dedicated_locks: dict[str, anyio.Lock] = {}
        async with anyio.create_task_group() as tasks:
            self._task_groups.append(tasks)
            tasks.start_soon(self._warm)
            try:
                yield
            finally:
                self._task_groups.remove(tasks)
                tasks.cancel_scope.cancel()
        if not self._task_groups:
            await self._kill_all()

    async def _kill_all(self) -> None:
        for worker in [*self._idle, *self._busy, *self._dedicated.values()]:
            await worker.kill()
        self._idle.clear()
        self._busy.clear()
        self._dedicated.clear()

    async def call(
        self, request: Mapping[str, Any], *, seconds: float | None = None, patience: float | None = None
    ) -> dict[str, Any]:
        """Return the first frame that answers `request`; whatever follows it is awaited in the background.

        Args:
            patience: seconds to wait for a lock of somebody else's.

        Raises:
            Problem: the worker refuses, was stopped at the time limit, or died.
        """
        reply = await self.call_for_pages(request, seconds=seconds, patience=patience)
        return reply.frame

    async def call_long(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what `call` does, for a request that reads or writes a whole database."""
        return await self.call(request, seconds=LONG_OPERATION_LIMITS * self.seconds)

    async def call_for_pages(
        self, request: Mapping[str, Any], *, seconds: float | None = None, patience: float | None = None
    ) -> Reply:
        """Do what `call` does, and return what follows the first frame too."""
        limit = self.seconds if seconds is None else seconds
        if patience is None:
            patience = min(_LOCK_WAIT_SECONDS, limit * _LOCK_WAIT_SHARE)
        started = anyio.current_time()
        needs_new_worker = False
        for pause in itertools.chain(_LOCK_PAUSES, itertools.repeat(_LOCK_PAUSES[-1])):
            try:
                return await self._try_call(request, limit, started + limit, needs_new_worker=needs_new_worker)
            except WorkerDied:
                if needs_new_worker or request["do"] in _CHANGES:
                    raise
                needs_new_worker = True  # perhaps it was dead already
            except DatabaseLocked as locked:
                waited = anyio.current_time() - started
                if waited >= patience:
                    raise _name_lock_holder(locked, request["path"], waited) from None
                await anyio.sleep(pause)
        raise AssertionError

    async def _try_call(
        self, request: Mapping[str, Any], limit: float, deadline: float, *, needs_new_worker: bool
    ) -> Reply:
        await self._acquire_slot(limit, deadline)
        worker: Worker | None = None
        is_awaited = False
        try:
            worker = await self._take_worker(request, needs_new_worker=needs_new_worker)
            self._busy.add(worker)
            seconds = max(_MIN_CALL_SECONDS, deadline - anyio.current_time())
            frame = await self._ask(worker, request, seconds, limit)
            if frame.get("end"):
                return Reply(raise_for_error(frame), None)
            remainder = Remainder()
            self._task_groups[-1].start_soon(self._await_remainder, worker, remainder, seconds)
            is_awaited = True
            return Reply(frame, remainder)
        finally:
            if not is_awaited:
                await self._give_back(worker)

    async def _take_worker(self, request: Mapping[str, Any], *, needs_new_worker: bool) -> Worker:
        if needs_new_worker:
            return await Worker.start(self._launcher)
        if not self._idle and self._warming is not None:
            await self._warming.wait()
        while self._idle:
            worker = self._idle.pop()
            if _can_answer(worker, request):
                return worker
            await worker.kill()
        return await Worker.start(self._launcher)

    async def _acquire_slot(self, limit: float, deadline: float) -> None:
        try:
            self._slots.acquire_nowait()
            return
        except anyio.WouldBlock:
            pass
        # Waiting for a worker is a part of the call's time.
        with anyio.move_on_after(deadline - anyio.current_time()):
            await self._slots.acquire()
            return
        raise Unavailable(
            f"All {self._max_workers} workers were busy for the whole time limit of {limit:g} s.",
            "Try again, fewer at once.",
        )

    async def call_dedicated(self, owner: str, request: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
        """Do what `call` does, always on the same worker while it lives: one that remembers."""
        async with self._dedicated_locks.setdefault(owner, anyio.Lock()):
            worker = self._dedicated.pop(owner, None)
            if worker is not None and not _can_answer(worker, request):
                await worker.kill()
                worker = None
            if worker is None:
                worker = await Worker.start(self._launcher)
            try:
                self._busy.add(worker)
                return raise_for_error(await self._ask(worker, request, seconds, seconds))
            finally:
                self._busy.discard(worker)
                if worker.is_alive and self._task_groups:
                    self._dedicated[owner] = worker
                else:
                    await worker.kill()

    async def _ask(self, worker: Worker, request: Mapping[str, Any], seconds: float, limit: float) -> dict[str, Any]:
        """Return the first answer of `worker`, which has `seconds` left of the `limit` there was."""
        is_usable = False
        is_change = request["do"] in _CHANGES
        try:
            worker.send({**request, "seconds": seconds, "time_limit": limit})
            frame = await worker.receive(seconds + _LATE_SECONDS)
            if frame is not None:
                is_usable = True
                return frame
            raise Unavailable(
                f"SQLite did not stop at the time limit of {limit:g} s; its process was ended.",
                _UNKNOWN_OUTCOME if is_change else "Ask for less.",
            )
        except anyio.get_cancelled_exc_class():
            is_usable = await self._interrupt(worker)
            raise
        except ProcessExited:
            raise WorkerDied(
                "SQLite's process ended in the middle of the statement.",
                _UNKNOWN_OUTCOME if is_change else "Other calls still work.",
            ) from None
        finally:
            if not is_usable:
                await worker.kill()

    async def _interrupt(self, worker: Worker) -> bool:
        """Cancel what `worker` does, and return whether it has stopped and can be used again."""
        deadline = anyio.current_time() + _CANCEL_SECONDS
        with anyio.CancelScope(shield=True):
            try:
                worker.send({"cancel": True})
                while (frame := await worker.receive(deadline - anyio.current_time())) is not None:
                    if frame.get("end"):
                        return True
            except ProcessExited:
                pass
        return False

    async def _await_remainder(self, worker: Worker, remainder: Remainder, seconds: float) -> None:
        has_answered = False
        try:
            frame = await worker.receive(seconds + _LATE_SECONDS)
            if frame is not None:
                has_answered = True
                remainder.stopped = frame.get("stopped")
                if "error" in frame:
                    _, remainder.stopped, _ = frame["error"]
        except ProcessExited:
            pass
        finally:
            if not has_answered:
                remainder.stopped = "the query was stopped at its time limit"
                await worker.kill()
            remainder.done.set()
            await self._give_back(worker)

    async def _give_back(self, worker: Worker | None) -> None:
        self._slots.release()
        if worker is None:
            return
        self._busy.discard(worker)
        if not worker.is_alive:
            if self._task_groups and not self._idle:
                self._task_groups[-1].start_soon(self._warm)
        elif not self._task_groups:
            await worker.kill()
        else:
            self._idle.append(worker)
            if len(self._idle) > _MAX_IDLE and not self._is_thinning:
                self._is_thinning = True
                self._task_groups[-1].start_soon(self._thin)

    async def _thin(self) -> None:
        """Kill idle workers that nobody has needed for a while."""
        try:
            await anyio.sleep(_LINGER_SECONDS)
        finally:
            self._is_thinning = False
        while len(self._idle) > _MAX_IDLE:
            await self._idle.pop(0).kill()

    async def _warm(self) -> None:
        """Start a worker for the next call."""
        if self._warming is not None:
            return
        started = anyio.Event()
        self._warming = started
        try:
            worker = await Worker.start(self._launcher)
        except Problem as problem:
            logger.warning("No worker is kept warm: %s", problem)
            return
        finally:
            self._warming = None
            started.set()
        if len(self._idle) < _MAX_IDLE and self._task_groups:
            self._idle.append(worker)
        else:
            await worker.kill()


def _can_answer(worker: Worker, request: Mapping[str, Any]) -> bool:
    """Return whether a worker lives, and reaches the folders that the databases of a request are in now."""
    databases = [request["path"], *request.get("beside", {}).values()]
    return worker.is_alive and identify_folders(databases) <= worker.folders


def _name_lock_holder(locked: DatabaseLocked, path: str, waited: float) -> Unavailable:
    """Return the problem of a call that has waited for a lock long enough, with who holds it."""
    holder = find_lock_holder(path) or "another program or another call of this server"
    fix = locked.fix
    if holder.startswith("another program"):
        fix += " If a browser or the like keeps it, the operator can serve a copy of the file and of its `-wal`."
    return Unavailable(f"{locked.failure} by {holder}, for at least {waited:.1f} s.", fix)
