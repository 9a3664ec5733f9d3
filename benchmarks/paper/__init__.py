"""The paper's experiments on real data, with the methods that it compares with.

``python -m benchmarks.paper cifar10|mnist|cora-ml --data DIR --cache DIR --out DIR``; README.md in
this folder says where the data come from and what comes out. One file a step:

========== =========================================================================================
settings   what is trained, sampled and compared
sampling   networks, logits of noisy, clean and attacked inputs: all that needs torch, cached
samples    scores from logits, sorted once for every method
methods    each method as calibration values, test values and a rank
splits     random splits into calibration and test points, all at once
runs       the grids of experiments: rows of one tidy table
checks     coverage under attack, runtime, errors of confidence bounds
verified   VRCP and Lip-RCP, which need bounds on a network
exact      derandomised l1 certificates
verdicts   who has the smaller sets, and every exception
report     the Markdown report; `tables`, `plots` and `remarks` are its parts
published  networks with published weights
========== =========================================================================================
"""
