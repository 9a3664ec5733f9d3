"""Monte-Carlo scores of smoothed torch models, and prediction sets from a model in one object.

The noise is keyed by (seed, phase, input id, draw), see `bincp.noise`, and depends neither on the
batch size, nor on the order of the inputs, nor on the device. The scores may, through the model:
the last bits of a matrix product often depend on the shape of the batch.

Gaussian, Laplace and Uniform noise, with or without a grid, is drawn where the model is: on CUDA by
Triton kernels if triton is installed, while the model works on the batch before, and on other
devices by torch operations. Its bits are those of the C code that draws on the CPU, which is
compared when a device first draws; a device that gives other bits does not draw. Inputs that are on
the device stay there. All other noise is drawn on the CPU and copied.

All functions here may be called from several threads at once; `sample_scores`, `RobustClassifier`
and `RobustRegressor` say which changes of shared objects must wait.

The guarantee rests on these properties of the noise:

* The draws of one calibration input are independent, and so are those of different calibration
  inputs: calibration ids must differ, over all calls that make up one calibration.
* Test draws are independent of all calibration noise. The phases see to that; never calibrate
  on scores that were drawn in the phase "test", nor predict from those of the phase "calibration".
* Settings such as p, tau or the temperature of a model are chosen on points that are neither
  calibration nor test points, with noise of the phase "tuning". Two calls with one phase and one
  seed draw the same noise for inputs of equal ids, and ids begin at 0 in each call. So separate
  points in the phase "calibration" get the very noise of the calibration points; what is tuned on
  it is fitted to that noise, and the guarantee is lost. Two steps of tuning share the noise of
  "tuning", too: a step that is to judge what another one chose needs other ids or another seed. The
  notes of `bincp.BinCP` say what may be tuned on what.
* The adversary who picks the test input does not know the test noise: keep the seed secret where
  that matters. Test inputs may share noise with each other, and labels of one input always do.
"""

from bincp.sampling._classifier import PredictionSets, RobustClassifier
from bincp.sampling._exact import exact_probabilities
from bincp.sampling._functions import count_scores, sample_scores, vote_counts
from bincp.sampling._graphs import Graph, NoisyGraphs
from bincp.sampling._normalized import NormalizedModel
from bincp.sampling._regressor import RobustRegressor
from bincp.sampling._run._merging import merge
from bincp.sampling._run._ray import run_on_ray
from bincp.sampling._run._reading import Run
from bincp.sampling._run._reading import open_run as open  # noqa: A004
from bincp.sampling._run._running import run

__all__ = [
    "Graph",
    "NoisyGraphs",
    "NormalizedModel",
    "PredictionSets",
    "RobustClassifier",
    "RobustRegressor",
    "Run",
    "count_scores",
    "exact_probabilities",
    "merge",
    "open",
    "run",
    "run_on_ray",
    "sample_scores",
    "vote_counts",
]
