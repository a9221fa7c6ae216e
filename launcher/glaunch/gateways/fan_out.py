"""Many hosts at once, a bounded number in flight, one watchdog for all deadlines, and a Ctrl-C that leaves nothing running."""

import contextlib
import heapq
import itertools
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_JOIN_S = 5.0  # a worker that is stuck in a name look-up cannot be woken; it is a daemon and ends with the process


@dataclass(slots=True)
class Guard:
    """One deadline; `over` once the work was done before it."""

    act: Callable[[], None]
    over: bool = False


@dataclass(slots=True)
class Watchdog:
    """One thread that acts at deadlines: shuts a socket, never waits. Use as a context."""

    _heap: list[tuple[float, int, Guard]] = field(default_factory=list)
    _wake: threading.Condition = field(default_factory=threading.Condition)
    _count: Iterator[int] = field(default_factory=itertools.count)
    _thread: threading.Thread | None = None
    _closing: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def stopped(self) -> bool:
        """True once all is to end."""
        return self._stop.is_set()

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond a stop."""
        self._stop.wait(seconds)

    def __enter__(self) -> "Watchdog":
        self._thread = threading.Thread(target=self._watch, name="glaunch-watchdog", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    @contextlib.contextmanager
    def guard(self, deadline: float, act: Callable[[], None]) -> Iterator[Guard]:
        """While this context lasts, `act` is called once when `time.monotonic()` passes `deadline`, or when all is stopped."""
        one = Guard(act)
        with self._wake:
            heapq.heappush(self._heap, (float("-inf") if self.stopped else deadline, next(self._count), one))
            self._wake.notify()
        try:
            yield one
        finally:
            with self._wake:
                one.over = True

    def stop(self) -> None:
        """Act on everything that is guarded, now and from now on."""
        with self._wake:
            self._stop.set()
            self._heap = [(float("-inf"), number, one) for _, number, one in self._heap]
            self._wake.notify()

    def _watch(self) -> None:
        with self._wake:
            while not self._closing:
                while self._heap and (self._heap[0][2].over or self._heap[0][0] <= time.monotonic()):
                    one = heapq.heappop(self._heap)[2]
                    if not one.over:
                        one.act()
                self._wake.wait(self._heap[0][0] - time.monotonic() if self._heap else None)


@dataclass(frozen=True, slots=True)
class _Done(Generic[R]):
    index: int
    result: R | None
    error: BaseException | None


def fan_out(items: Sequence[T], work: Callable[[T], R], *, width: int, watchdog: Watchdog) -> Generator[tuple[T, R], None, None]:
    """(item, result) as they finish, at most `width` at once.

    What `work` raises ends the fan-out and is raised here. On an interrupt (or when the caller stops asking) no new
    item starts, the watchdog stops those in flight, and their threads are waited for before the interrupt goes on.
    """
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[_Done[R]] = queue.SimpleQueue()
    for index in range(len(items)):
        todo.put(index)
    threads = [
        threading.Thread(target=_worker, args=(items, work, todo, done, watchdog), name=f"glaunch-ssh-{number}", daemon=True)
        for number in range(min(width, len(items)))
    ]
    for thread in threads:
        thread.start()
    finished = False
    try:
        for _ in items:
            one = done.get()
            if one.error is not None:
                raise one.error
            yield items[one.index], one.result  # type: ignore[misc]
        finished = True
    finally:
        if not finished:
            watchdog.stop()
        end = time.monotonic() + _JOIN_S
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))


def _worker(
    items: Sequence[T], work: Callable[[T], R], todo: "queue.SimpleQueue[int]", done: "queue.SimpleQueue[_Done[R]]", watchdog: Watchdog
) -> None:
    while not watchdog.stopped:
        try:
            index = todo.get_nowait()
        except queue.Empty:
            return
        try:
            done.put(_Done(index, work(items[index]), None))
        except BaseException as error:  # noqa: BLE001 - carried to the caller's thread, which raises it
            done.put(_Done(index, None, error))
            return
