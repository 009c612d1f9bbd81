"""The regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import column_or_1d, get_tags

from leaflearn.core.grouped_data import GroupedData
from leaflearn.engines.fitted_state import FittedState
from leaflearn.engines.local_models import NetworkModels
from leaflearn.estimators.base import BaseLeaf, mean_over_groups
from leaflearn.estimators.validation import check_regression_y

# Least noise variance, in units of the variance of y, so that a perfect fit has a posterior.
MIN_NOISE = 1e-12


class LeafRegressor(RegressorMixin, BaseLeaf):
    """Regression where the same input has different answers in hidden contexts.

    Every group of rows goes to the local model that explains it best, and only that model learns from it.

    Parameters
    ----------
    n_contexts : int or "auto", default="auto"
        Number of contexts. "auto" reads it off the data, before anything is trained: the smallest number whose contexts foretell held-out
        rows of their groups as well as larger numbers do; 1 where nothing conflicts. See `selection_`.
    local_model : None, callable or scikit-learn regressor, default=None
        What answers in one context: None for a network sized to the data, which also standardises X and y; a factory
        `(input_shape, n_outputs) -> torch.nn.Module`, which sees X and y as they are (a function or class, and no
        lambda, where the estimator is to be pickled); or any scikit-learn regressor.
    allocation : {"annealed", "hard", "sampled", "soft"} or rule, default="annealed"
        How groups are shared out: soft at first and hard in the end; LEAF as printed; LEAF-EM; textbook EM; or an object of your own.
    temperature : float or "auto", default="auto"
        Of the allocation, in units of the loss (of the variance of y, with the default local model).
    init : {"auto", "conflict", "seeded", "random"}, default="auto"
        How starts are made: "conflict" reads contexts off the disagreement itself, with smooth models in closed form, before anything is
        trained, and goes to random starts where they explain too little; "seeded" does so too, but lets each further context begin with
        groups that are explained badly so far, like k-means++; "auto" is "conflict" for the annealed rule.
    n_init : int or "auto", default="auto"
        Number of starts, of which the best is kept; "auto" makes five of small networks, which run side by side, one of large ones;
        of scikit-learn models four, or one where they are scored out of fold.
    loss : {"auto", "squared", "robust"} or loss object, default="auto"
        Loss of a network; "auto" is the squared error. "robust" (Huber) grows in a straight line beyond a tenth of the spread of y, so that
        rows that are far off pull no harder. A module of your own sees y as it is: pass it `Huber(scale=...)` in the units of y.
    optimizer : {"adamw", "adam", "sgd"} or callable, default="adamw"
        Optimizer of a network, or a callable `(parameters, lr=...)` such as `torch.optim.RMSprop`.
    learning_rate : float, default=0.003
        Its step size.
    schedule : {"cosine", "linear", "constant"} or callable, default="cosine"
        How the step size falls as the run goes on.
    max_epochs : int or "auto", default="auto"
        Passes over the groups; about 2,000 steps by default, and at least 20 passes, for finding the contexts and
        again for learning them afresh. For scikit-learn local models: refits of a start, 30 by default,
        or 20 out of fold; each refit fits `n_contexts` models, and five times as many out of fold.
    groups_per_step : int, default=32
        Groups in an optimizer step.
    rows_per_group : int or None, default=32
        At most this many rows of a group in a step, drawn anew in each pass.
    max_grad_norm : float or None, default=None
        Clip each local model's gradient to this norm.
    trim : float, default=0.0
        Share of each group's rows, at least 0 and less than 0.5, that is left out when its context is chosen: under each local model those
        with the largest loss, rounded down, so that groups of fewer than `1 / trim` rows lose none. Then a few wrong rows do not decide.
        The local models still learn from all rows.
    tol, n_iter_no_change : float, int or None, default=1e-4, 20
        Stop when the objective has not fallen by a share `tol` for this many passes; None never stops early.
    refresh : bool, default=True
        After annealing, let new networks learn from the allocation that was found: they never saw the wrong answers.
    out_of_fold : bool or "auto", default="auto"
        Score groups only with scikit-learn models that have not seen them; "auto" does so where they learn their rows by heart.
    callbacks : list of leaflearn.core.training.Callback, default=None
        Told after every step and every epoch of a network's training.
    device : str, default="auto"
        Where networks run.
    random_state : int, RandomState instance or None, default=None
        Same seed, same machine, same fit.
    verbose : int, default=0
        1 shows a progress bar with loss and usage.

    Attributes
    ----------
    n_contexts_ : int
        Number of contexts.
    groups_ : ndarray of shape (n_groups,)
        The groups' labels, sorted where they can be.
    contexts_ : ndarray of shape (n_groups,)
        The context of each group; contexts are numbered by falling usage.
    probabilities_ : ndarray of shape (n_groups, n_contexts_)
        How sure that is.
    usage_ : ndarray of shape (n_contexts_,)
        Share of groups in each context.
    local_models_ : list
        The fitted local models.
    empirical_error_ : float
        Mean over groups of the mean loss under the best local model.
    history_ : dict of arrays
        One row an epoch, or a refit: epoch, loss, changed, usage, temperature, seconds; of networks learning_rate too.
    restarts_ : list of dict
        Every start's fate: stage, error, kept, n_iter, converged, its `curve` of losses and the `contexts` of the groups, in numbers of its
        own. The stage is "given" where it began with contexts read off the conflict, else "training", or "search" and "refresh" where new
        networks learnt what the search had found; then one of either may be kept. First come those among which contexts were chosen, then
        those of the refresh, and last those of a stage that led nowhere, none of which was kept.
    best_restart_ : int
        Which of them was kept, of those among which contexts were chosen.
    context_order_ : ndarray of shape (n_contexts_,)
        The number that each context had while it was trained, as callbacks saw it.
    n_iter_ : int
        Epochs, or refits, of the start that was kept.
    converged_ : bool
        Whether the fit looks right: the allocation stood still, no other explains unseen groups much better, nor one context more, equally
        good starts agree, local models explain more than a constant does, and networks do not go astray between their rows. Where not, a
        `RecoveryWarning` says what speaks against it and what to do.
    stability_ : float
        Share of groups, weighed by how clearly they tell, on which the least agreeing of the equally good starts agrees with the fit.
        Like `converged_` it is found anew where `prune` or `merge` removed a context, from the rows in `replay_buffer_` and without the other
        starts, which had other contexts; `partial_fit` leaves both as they were, and all three leave `restarts_`.
    init_ : str
        How the start was made, and why.
    outliers_ : ndarray of shape (n_samples,)
        Rows that seem to belong to another context than their group's; they were left out. None are looked for where they are few.
    replay_buffer_ : leaflearn.core.grouped_data.GroupedData
        At most 2,000 of the training rows, groups of each context in turn, from which `prune`, `merge` and `partial_fit` learn on. They are
        pickled with the estimator; set it to None to forget them, after which none of the three can train.
    selection_ : dict of arrays
        For 1, 2, ... contexts, as far as they were tried without training: n_contexts, error (of groups under the best model, which has
        not seen them), held_out (of rows in the context that the others of their group chose) and train_error, in units of the targets'
        variance; aic, bic and icl of the smooth models as a mixture of Gaussian regressions. Where inputs name items, whose mean answers
        stand in for smooth models, there are the first three only. All are empty where nothing was tried.

    Examples
    --------
    Two sites measure with opposite signs; nobody wrote down which is which.

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.normal(size=(200, 1)), np.repeat(np.arange(20), 10)
    >>> y = np.where(site % 3 == 0, -2.0, 2.0) * X[:, 0]
    >>> leaf = LeafRegressor(n_contexts=2, local_model=LinearRegression(), random_state=0).fit(X, y, groups=site)
    >>> leaf.predict_each([[1.0]]).round(3).tolist()
    [[2.0, -2.0]]
    >>> leaf.identify([[1.0], [3.0]], [-2.0, -6.0]).context
    array([1])
    """

    def _check_y(self, y: Any, reset: bool) -> NDArray[np.float64]:
        values = check_regression_y(y, type(self).__name__)
        if reset:
            values = self._one_output_if_need_be(values)
            self.y_shape_ = values.shape[1:]
        elif np.prod(values.shape[1:]) != np.prod(self.y_shape_):
            raise ValueError(
                f"y has shape {values.shape}, but {type(self).__name__} was fitted with {int(np.prod(self.y_shape_))} outputs."
            )
        return values.reshape(len(values), -1)

    def _one_output_if_need_be(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if values.ndim == 1 or self.__sklearn_tags__().target_tags.multi_output:
            return values
        if values.shape[1] > 1:
            raise ValueError(
                f"y has {values.shape[1]} outputs, but local_model={self.local_model!r} predicts one; fit one estimator for each."
            )
        return column_or_1d(values, warn=True)

    def _finish(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return outputs.reshape(*outputs.shape[:-1], *self.y_shape_)

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Coefficient of determination.

        With `groups`, every second row of a group identifies its context and the others are scored; a group of a single row, and all
        rows without `groups`, are scored in the most used context.

        Parameters
        ----------
        X, y
            Labelled rows.
        groups, sample_weight : array of shape (n_samples,), default=None
            The group and the weight of each row.

        Returns
        -------
        float
            At most 1; 0 is a constant.
        """
        return self._score(r2_score, X, y, groups, sample_weight)

    def _posterior_temperature(self, state: FittedState, data: GroupedData) -> float:
        """Twice the residual variance: squared errors as a Gaussian log-likelihood."""
        variance = state.scores.min(1).sum() / len(data.y)  # of the residuals, per row and output
        # A row's loss is the mean over its outputs, its log-likelihood a sum over them.
        return 2.0 * max(variance, MIN_NOISE * state.constant_loss) / data.n_outputs

    def _empirical_error(self, state: FittedState, data: GroupedData | None) -> float:
        """The squared error in the units of y.

        For a loss of the user's own, and for modules that see y as it is, the loss of training.
        """
        mean_losses = state.scores.min(1) / state.sizes
        if self._engine == "module" or self.loss not in ("auto", "squared"):
            return float(mean_losses.mean())
        if data is None:
            return float("nan")
        if isinstance(state.local_models, NetworkModels) and data.n_outputs == 1:
            assert state.local_models.y_scaling is not None
            return float(mean_losses.mean() * state.local_models.y_scaling.scale[0] ** 2)
        outputs = state.local_models.outputs(data.X)
        own = outputs[np.arange(len(data.y)), state.contexts[data.group]]
        return mean_over_groups(np.square(own - data.y).mean(1), data)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = (
            True  # two contexts are wrong for the plain problems of scikit-learn's checks
        )
        tags.target_tags.multi_output = (
            self._engine != "refit" or get_tags(self.local_model).target_tags.multi_output
        )
        return tags
