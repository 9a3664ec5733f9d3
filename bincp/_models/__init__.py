"""Models of any library as functions of torch tensors; `bincp.adapters` has the public names."""

from bincp._models._as_model import ModelLike as ModelLike
from bincp._models._as_model import as_model
from bincp._models._as_regressor import as_regressor

__all__ = ["as_model", "as_regressor"]
