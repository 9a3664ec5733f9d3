"""Models of other libraries for `bincp.sampling`, and interfaces of other libraries for bincp.

A model of `bincp.sampling` maps a batch of noisy inputs to logits, as torch tensors. `as_model`
makes one from a torch module, a scikit-learn classifier, an estimator of the Adversarial Robustness
Toolbox (ART), or a function of NumPy arrays; `sample_scores`, `count_scores`, `vote_counts` and
`RobustClassifier` call it on their model, so users need it only for its options.

Noise is added before the model sees the input: the scaling of a scikit-learn pipeline and ART's
``preprocessing`` and ``preprocessing_defences`` act on the noisy input, which the certificate
requires. `as_regressor` does the same for regressors. Noisy inputs leave the range of clean ones,
and are not clipped; ART's ``clip_values`` bound its attacks, and its ``predict`` does not clip to
them either.

`SplitConformalClassifier` has the interface of the class of that name in MAPIE, so that code for it
runs with robust sets. `noisy_outcomes` runs set predictors of other conformal libraries on noisy
inputs, for `bincp.audit`.
"""

from bincp._models import ModelLike as ModelLike
from bincp._models import as_model, as_regressor
from bincp.adapters._mapie import SplitConformalClassifier
from bincp.adapters._predictors import noisy_outcomes

__all__ = ["SplitConformalClassifier", "as_model", "as_regressor", "noisy_outcomes"]
