"""Print the table of RESULTS.md."""

import torch

from benchmarks.diabetes import run, table

torch.set_num_threads(1)  # the network is small
print(table(run()))
