"""The passes of a DataLoader over its data: in the caller, or with workers ahead of it."""

import itertools
import multiprocessing
import queue
import threading

from prong.profiler import record_function

from .sampler import drawn_seed
from .worker import CHECK_SECONDS, Ended, Raised, Resume, Work, run_process, run_thread


class Pass:
    """One pass over the data; what ``iter(loader)`` gives."""

    def __init__(self, loader):
        self._loader = loader
        self._indices = iter(loader._index_sampler)
        self._base_seed = drawn_seed(loader.generator)
        self._name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"
        self._yielded = 0

    def _work(self):
        loader = self._loader
        return Work(
            loader._fetcher,
            loader.dataset,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
            self._base_seed,
            loader.worker_init_fn,
            loader.num_workers,
        )

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader._index_sampler)

    def __next__(self):
        with record_function(self._name):
            data = self._next_data()
            self._yielded += 1
            self._loader._check_length(self._yielded)
            return data


class OwnPass(Pass):
    """Fetches in the calling thread."""

    def __init__(self, loader):
        super().__init__(loader)
        self._fetcher = self._work().new_fetcher()

    def _next_data(self):
        return self._fetcher.fetch(next(self._indices))


class WorkersPass(Pass):
    """Hands indices to workers round robin, and gives their batches out in order."""

    def __init__(self, loader):
        super().__init__(loader)
        self._count = loader.num_workers
        self._most = loader.prefetch_factor * self._count
        self._closed = False
        work = self._work()
        if loader.worker_method == "thread":
            self._results = queue.Queue()
            self._done = threading.Event()
            make_queue, start = queue.Queue, threading.Thread
            target = run_thread
        else:
            context = loader.multiprocessing_context or multiprocessing.get_context()
            self._results = context.Queue()
            self._done = context.Event()
            make_queue, start = context.Queue, context.Process
            target = run_process
        self._queues, self._workers = [], []
        for worker_id in range(self._count):
            indices = make_queue()
            worker = start(
                target=target,
                args=(work, worker_id, indices, self._results, self._done),
                daemon=True,
            )
            worker.start()
            self._queues.append(indices)
            self._workers.append(worker)
        self._begin()

    def restart(self):
        """Begins another pass with the same workers."""
        self._indices = iter(self._loader._index_sampler)
        self._yielded = 0
        for indices in self._queues:
            indices.put(Resume())
        waiting = self._count
        while waiting:
            number, _ = self._receive()
            waiting -= isinstance(number, Resume)
        self._begin()

    def _begin(self):
        self._sent = self._wanted = self._outstanding = 0
        self._tasks = {}  # number to [worker], or to [worker, data] once it has come
        self._active = [True] * self._count
        self._loads = [0] * self._count
        self._turn = itertools.cycle(range(self._count))
        for _ in range(self._most):
            self._send()

    def _send(self):
        try:
            index = next(self._indices)
        except StopIteration:
            return
        share = self._most // max(1, sum(self._active))
        for _ in range(self._count):
            worker = next(self._turn)
            if self._active[worker] and (self._loader.in_order or self._loads[worker] < share):
                break
        else:
            return
        self._queues[worker].put((self._sent, index))
        self._tasks[self._sent] = [worker]
        self._loads[worker] += 1
        self._outstanding += 1
        self._sent += 1

    def _next_data(self):
        while True:
            self._skip_ended()
            if self._wanted == self._sent:
                if not self._loader.persistent_workers:
                    self.close()
                raise StopIteration
            if len(self._tasks[self._wanted]) == 2:
                worker, data = self._tasks.pop(self._wanted)
                self._wanted += 1
                return self._give(worker, data)
            number, data = self._receive()
            self._outstanding -= 1
            if isinstance(data, Ended):
                self._end(data.worker_id)
                self._send()
            elif number == self._wanted or not self._loader.in_order:
                worker = self._tasks.pop(number)[0]
                self._wanted += number == self._wanted
                return self._give(worker, data)
            else:
                self._tasks[number].append(data)

    def _skip_ended(self):
        # Tasks of a worker whose dataset has ended bring no data.
        while self._wanted < self._sent:
            task = self._tasks.get(self._wanted)
            if task is not None:
                if len(task) == 2 or self._active[task[0]]:
                    return
                del self._tasks[self._wanted]
            self._wanted += 1

    def _end(self, worker):
        self._active[worker] = False
        if not self._loader.persistent_workers:
            self._queues[worker].put(None)

    def _give(self, worker, data):
        self._loads[worker] -= 1
        self._send()
        if isinstance(data, Raised):
            data.reraise()
        return data

    def _receive(self):
        timeout = self._loader.timeout
        while True:
            try:
                return self._results.get(timeout=timeout or CHECK_SECONDS)
            except queue.Empty:
                self._check_alive()
                if timeout:
                    raise RuntimeError(f"DataLoader timed out after {timeout} seconds") from None

    def _check_alive(self):
        dead = [w for w, active in zip(self._workers, self._active) if active and not w.is_alive()]
        if dead:
            names = ", ".join(str(getattr(w, "pid", w.name)) for w in dead)
            raise RuntimeError(f"DataLoader worker (pid(s) {names}) exited unexpectedly")

    def close(self):
        """Ends the workers."""
        if self._closed:
            return
        self._closed = True
        self._done.set()
        for indices in self._queues:
            indices.put(None)
        if self._loader.worker_method == "thread":
            return  # they end by themselves, after the batch that they are at
        for worker in self._workers:
            worker.join(timeout=CHECK_SECONDS)
            if worker.is_alive():
                worker.terminate()
        for each in [*self._queues, self._results]:
            each.cancel_join_thread()
            each.close()

    def __del__(self):
        if hasattr(self, "_workers"):
            self.close()
