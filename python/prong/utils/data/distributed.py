"""DistributedSampler: one process's share of the indices."""

import math

import prong

from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every ``num_replicas``-th index from ``rank`` on, in an order that all processes agree on."""

    def __init__(
        self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False
    ):
        if num_replicas is None or rank is None:
            raise RuntimeError(
                "Requires distributed package to be available: prong has no process groups, "
                "so give num_replicas and rank"
            )
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        n = len(dataset)
        if drop_last and n % num_replicas != 0:
            self.num_samples = math.ceil((n - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            generator = prong.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = prong.randperm(n, generator=generator).tolist()
        else:
            indices = list(range(n))
        if not self.drop_last and len(indices) < self.total_size:
            indices *= math.ceil(self.total_size / n)
        return iter(indices[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Makes the order of the next pass another one."""
        self.epoch = epoch
