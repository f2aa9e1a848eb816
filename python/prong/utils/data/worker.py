"""What a worker of a DataLoader does, in a thread or in a process of its own. Called by workers.py."""

import os
import queue
import random
import threading
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np

import prong

CHECK_SECONDS = 5.0


@dataclass(frozen=True)
class WorkerRandom:
    """Generators of one worker thread, which has no global state of its own."""

    random_generator: random.Random
    torch_generator: Any
    numpy_generator: Any


@dataclass(frozen=True)
class WorkerInfo:
    """Which worker this is."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: WorkerRandom | None = None
    worker_method: str = "multiprocessing"


_of_thread = threading.local()
_of_process: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Which worker the caller is; None in the main process."""
    return getattr(_of_thread, "info", _of_process)


@dataclass(frozen=True)
class Ended:
    """A worker's iterable dataset has no more samples."""

    worker_id: int


@dataclass(frozen=True)
class Resume:
    """Begin another pass; the worker answers with the same."""


class Raised:
    """An exception of a worker on its way to the main process."""

    def __init__(self, error: BaseException, where: str):
        self.type = type(error)
        self.where = where
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.key = error.args[0] if isinstance(error, KeyError) and error.args else None

    def reraise(self):
        """Raises an exception of the same type whose text holds the worker's traceback."""
        text = f"Caught {self.type.__name__} {self.where}.\nOriginal {self.text}"
        if self.type is KeyError:
            raise KeyError(_AsIs(text))
        try:
            error = self.type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


class _AsIs(str):
    """KeyError shows the repr of its argument: here the text itself."""

    def __repr__(self):
        return str(self)


class MapFetcher:
    """Batches of a dataset by index."""

    def __init__(self, dataset, batched, collate, drop_last):
        self.dataset, self.batched, self.collate = dataset, batched, collate

    def fetch(self, index):
        """The batch of these indices."""
        if not self.batched:
            return self.collate(self.dataset[index])
        many = getattr(self.dataset, "__getitems__", None)
        return self.collate(many(index) if many else [self.dataset[i] for i in index])


class IterableFetcher:
    """Batches of what a dataset's iterator gives."""

    def __init__(self, dataset, batched, collate, drop_last):
        self.iterator, self.batched, self.collate = iter(dataset), batched, collate
        self.drop_last, self.ended = drop_last, False

    def fetch(self, index):
        """The next batch, of as many samples as there are indices; StopIteration at the end."""
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate(next(self.iterator))
        samples = []
        for _ in index:
            try:
                samples.append(next(self.iterator))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(index)):
            raise StopIteration
        return self.collate(samples)


@dataclass(frozen=True)
class Work:
    """All that a worker needs to know; pickled where processes are spawned."""

    fetcher: type
    dataset: Any
    batched: bool
    collate: Any
    drop_last: bool
    base_seed: int
    init: Any
    num_workers: int

    def new_fetcher(self):
        """A fetcher at the beginning of a pass."""
        return self.fetcher(self.dataset, self.batched, self.collate, self.drop_last)


def _numpy_seed(base_seed, worker_id):
    # NumPy spreads the bits, so that workers with neighbouring numbers have nothing in common.
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4)


def run_process(work: Work, worker_id: int, indices, results, done) -> None:
    """The main function of a worker process."""
    global _of_process
    try:
        prong.set_num_threads(1)
        seed = work.base_seed + worker_id
        random.seed(seed)
        prong.manual_seed(seed)
        np.random.seed(_numpy_seed(work.base_seed, worker_id))
        _of_process = WorkerInfo(worker_id, work.num_workers, seed, work.dataset)
        parent = os.getppid()
        _serve(work, worker_id, "process", indices, results, done, lambda: os.getppid() == parent)
    except KeyboardInterrupt:
        pass  # the main process has it too, and says so
    if done.is_set():
        results.cancel_join_thread()


def run_thread(work: Work, worker_id: int, indices, results, done) -> None:
    """The main function of a worker thread."""
    seed = work.base_seed + worker_id
    generator = prong.Generator()
    generator.manual_seed(seed)
    numbers = WorkerRandom(
        random.Random(seed),
        generator,
        np.random.default_rng(_numpy_seed(work.base_seed, worker_id)),
    )
    _of_thread.info = WorkerInfo(worker_id, work.num_workers, seed, work.dataset, numbers, "thread")
    _serve(work, worker_id, "thread", indices, results, done, lambda: True)


def _serve(work, worker_id, kind, indices, results, done, is_wanted):
    where = f"in DataLoader worker {kind} {worker_id}"
    fetcher, failed, ended = None, None, False
    try:
        if work.init is not None:
            work.init(worker_id)
        fetcher = work.new_fetcher()
    except Exception as error:
        failed = Raised(error, where)
    while is_wanted():
        try:
            message = indices.get(timeout=CHECK_SECONDS)
        except queue.Empty:
            continue
        if message is None:
            break
        if isinstance(message, Resume):
            fetcher, ended = work.new_fetcher(), False
            results.put((message, None))
            continue
        if done.is_set() or ended:
            continue
        number, index = message
        if failed is not None:
            data, failed = failed, None
        else:
            try:
                data = fetcher.fetch(index)
            except StopIteration as error:
                ended = work.fetcher is IterableFetcher
                data = Ended(worker_id) if ended else Raised(error, where)
            except Exception as error:
                data = Raised(error, where)
        results.put((number, data))
        del message, data, index
