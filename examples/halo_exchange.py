"""Heat that spreads on a plate whose rows are divided among processes, which exchange the rows at their borders.

    python examples/halo_exchange.py [--size CELLS] [--steps N] [--processes N]
    torchrun --nnodes 2 --nproc-per-node 4 … examples/halo_exchange.py [--size CELLS] [--steps N]

The first starts its processes here, the second is started by torch on as many machines as it is told. Each process has an array of
Octants for its rows and for one row of each neighbour's, the halo. torch sees the same memory by DLPack, so that rows go from the array to
the wire and from the wire into the array: no copy is made in between. The rows inside are computed while those are under way.
"""

from __future__ import annotations

import argparse
import os
import socket
import time

import numpy as np

import octants as oc


@oc.kernel
def diffuse(old: oc.types.NDArray[oc.f32, 2], new: oc.types.NDArray[oc.f32, 2], first: oc.i32, end: oc.i32):
    """One step of the rows from `first` up to `end`. The plate's border keeps its temperature."""
    for i, j in oc.ndrange((first, end), (1, old.shape[1] - 1)):
        around = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
        new[i, j] = old[i, j] + 0.2 * (around - 4.0 * old[i, j])


class Slab:
    """The rows of one process: 1 to `rows`, between row 0 and row `rows` + 1, which are the neighbours' or the plate's border."""

    def __init__(self, size: int, rank: int, processes: int):
        from torch import from_dlpack

        first, end = (rank * size) // processes, ((rank + 1) * size) // processes
        self.rows = end - first
        self.above = rank - 1 if rank > 0 else None
        self.below = rank + 1 if rank + 1 < processes else None
        # Arrays of Octants, and tensors of torch over the same memory.
        self.arrays = [oc.ndarray(oc.f32, (self.rows + 2, size + 2)) for _ in range(2)]
        self.tensors = [from_dlpack(array) for array in self.arrays]
        for tensor in self.tensors:
            for row in range(self.rows + 2):
                tensor[row] = float((first + row) % 64 == 0)  # stripes of heat

    def step(self) -> None:
        from torch import distributed

        old, new = self.arrays
        rows = self.tensors[0]
        under_way = []
        for neighbour, halo, own in ((self.above, 0, 1), (self.below, self.rows + 1, self.rows)):
            if neighbour is not None:
                under_way.append(distributed.irecv(rows[halo], neighbour))
                under_way.append(distributed.isend(rows[own], neighbour))
        diffuse(old, new, 2, self.rows)
        for message in under_way:
            message.wait()
        diffuse(old, new, 1, 2)
        if self.rows > 1:
            diffuse(old, new, self.rows, self.rows + 1)
        self.arrays.reverse()
        self.tensors.reverse()


def run(size: int, steps: int, out: str | None) -> None:
    """Runs this process's part; the process of rank 0 collects the whole plate."""
    import torch
    from torch import distributed

    distributed.init_process_group("gloo")
    rank, processes = distributed.get_rank(), distributed.get_world_size()
    oc.init(arch=oc.cpu, log_level="error")
    slab = Slab(size, rank, processes)
    slab.step()  # compiles
    distributed.barrier()
    start = time.perf_counter()
    for _ in range(steps - 1):
        slab.step()
    seconds = time.perf_counter() - start
    own = slab.tensors[0][1 : slab.rows + 1].clone()
    # Slabs differ by a row at most: they are sent as the largest.
    largest = -(-size // processes)
    padded = torch.zeros(largest, size + 2)
    padded[: slab.rows] = own
    parts = [torch.zeros_like(padded) for _ in range(processes)] if rank == 0 else None
    distributed.gather(padded, parts)
    if parts is not None:
        heights = [((one + 1) * size) // processes - (one * size) // processes for one in range(processes)]
        plate = torch.cat([part[:height] for part, height in zip(parts, heights, strict=True)])
        rate = size * size * (steps - 1) / max(seconds, 1e-9) / 1e6
        print(
            f"{processes} processes, {size} x {size} cells, {steps} steps: {rate:.1f} M cells/s, heat {plate.sum():.3f}"
        )
        if out is not None:
            np.save(out, plate.numpy())
    distributed.barrier()


def worker(rank: int, processes: int, port: int, size: int, steps: int, out: str | None) -> None:
    """One of the processes that were started here."""
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    run(size, steps, out)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--size", type=int, default=1024, help="cells along a side of the plate")
    parser.add_argument("--steps", type=int, default=200, help="steps in time")
    parser.add_argument("--processes", type=int, default=2, help="processes to start here")
    parser.add_argument("--out", help="a file for the plate, as numpy writes it")
    chosen = parser.parse_args()
    if chosen.size < chosen.processes or chosen.steps < 1:
        parser.error("there is at least a row for each process, and a step")
    if "RANK" in os.environ:  # torch has started this process
        run(chosen.size, chosen.steps, chosen.out)
        return
    import multiprocessing

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments = (chosen.processes, port, chosen.size, chosen.steps, chosen.out)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=worker, args=(rank, *arguments)) for rank in range(chosen.processes)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit("a process failed")


if __name__ == "__main__":
    main()
