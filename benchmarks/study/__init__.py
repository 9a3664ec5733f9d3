"""The study behind the defaults of the finite-sample corrections: real data, smoothed networks.

``python -m benchmarks.study.scores`` trains the networks and caches their sampled scores once;
everything else reads the cache and needs no network. `data` says where a user gets the data.
"""
