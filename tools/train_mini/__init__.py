"""Trainer of the mini model: the same mathematics as tools/reference, arranged to be fast on one GPU.

Run from tools/: `python -m train_mini.train --help`. Reading order: specs, numerics, rows, kernels, mhc, model, losses,
drafter, batches, optimizer, train, generate, export.
"""
