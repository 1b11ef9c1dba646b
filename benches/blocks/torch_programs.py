"""The same results by torch, whose products are those of the vendor's library, in f32 without tensor cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .rows import Arrays, Row, Size, poisoned
from .vectors import BINS, SCANNED, SORTED

Tensors = dict[str, torch.Tensor]


def scan(i: Tensors, o: Tensors) -> None:
    torch.cumsum(i["x"].view(-1, SCANNED), 1, out=o["y"].view(-1, SCANNED))


def histogram(i: Tensors, o: Tensors) -> None:
    o["counts"].copy_(torch.bincount(i["keys"], minlength=BINS))


def total(i: Tensors, o: Tensors) -> None:
    torch.sum(i["x"], dim=0, out=o["total"][0])


def factor(i: Tensors, o: Tensors) -> None:
    torch.linalg.cholesky(i["a"], out=o["f"])


def sort(i: Tensors, o: Tensors) -> None:
    o["y"].copy_(torch.sort(i["x"].view(-1, SORTED), dim=1).values.view(-1))


def product(i: Tensors, o: Tensors) -> None:
    torch.matmul(i["a"], i["b"], out=o["c"])


def row_sums(i: Tensors, o: Tensors) -> None:
    torch.sum(i["x"], dim=1, out=o["y"])


def copy(i: Tensors, o: Tensors) -> None:
    o["y"].copy_(i["x"])


PROGRAMS: dict[str, Callable[[Tensors, Tensors], None]] = {
    "cholesky_tiles16": factor,
    "cholesky_tiles32": factor,
    "cholesky_rows": factor,
    "copy": copy,
    "reduce": total,
    "scan": scan,
    "histogram": histogram,
    "row_sums": row_sums,
    "sort": sort,
}


class Bound:
    """A program of torch with its tensors."""

    def __init__(self, device: str, row: Row, size: Size) -> None:
        self.device, self.row, self.size = device, row, size
        self.program = product if row.name.startswith("product") else PROGRAMS[row.name]
        self.inputs: Tensors = {}
        self.outputs: Tensors = {}

    def fill(self, inputs: Arrays) -> None:
        outputs = {name: poisoned(*what) for name, what in self.row.outputs(**self.size).items()}
        self.inputs = {name: torch.from_numpy(value).to(self.device) for name, value in inputs.items()}
        self.outputs = {name: torch.from_numpy(value).to(self.device) for name, value in outputs.items()}

    def run(self) -> None:
        self.program(self.inputs, self.outputs)

    def finish(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def results(self) -> Arrays:
        return {name: value.cpu().numpy() for name, value in self.outputs.items()}


def start(arch: str) -> Callable[[Row, Size], Any]:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.zeros(1, device=arch)
    return lambda row, size: Bound(arch, row, size)
