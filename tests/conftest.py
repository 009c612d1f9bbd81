"""One thread for every test: small arrays gain nothing from more, and two threads on a busy machine lose much."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

torch.set_num_threads(1)
