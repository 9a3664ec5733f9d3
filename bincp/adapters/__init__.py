"""Models of other libraries as models for `bincp.sampling`.

A model of `bincp.sampling` maps a batch of noisy inputs to logits, as torch tensors. `as_model`
makes one from a torch module, a scikit-learn classifier, an estimator of the Adversarial Robustness
Toolbox (ART), or a function of NumPy arrays; `sample_scores`, `count_scores`, `vote_counts` and
`RobustClassifier` call it on their model, so users need it only for its options.

Noise is added before the model sees the input: the scaling of a scikit-learn pipeline and ART's
``preprocessing`` and ``preprocessing_defences`` act on the noisy input, which the certificate
requires. `as_regressor` does the same for regressors. `noisy_outcomes` runs set predictors of other
conformal libraries on noisy inputs, for `bincp.audit`. Noisy inputs leave the range of clean ones,
and are not clipped; ART's ``clip_values`` bound its attacks, and its ``predict`` does not clip to
them either.
"""

from bincp.adapters._as_model import ModelLike as ModelLike
from bincp.adapters._as_model import as_model
from bincp.adapters._as_regressor import as_regressor
from bincp.adapters._predictors import noisy_outcomes

__all__ = ["as_model", "as_regressor", "noisy_outcomes"]
