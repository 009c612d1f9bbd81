"""`LeafRegressor`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted

from leaflearn.core.grouped_data import GroupedData
from leaflearn.engines.fitted_state import FittedState
from leaflearn.engines.local_models import NetworkModels
from leaflearn.estimators.base import BaseLeaf, mean_over_groups
from leaflearn.estimators.validation import check_regression_y, check_X

# Lower bound of the noise variance, in units of the variance of y: a perfect fit has a posterior.
MIN_NOISE = 1e-12


class LeafRegressor(RegressorMixin, BaseLeaf):
    """Regression where the same input has different targets in hidden contexts.

    Every group of rows is allocated to the local model that explains it best, and only that model
    is trained on it.

    Parameters
    ----------
    n_contexts : int or "auto", default="auto"
        Number of contexts. "auto" chooses it: with group effects by the density of whole groups;
        otherwise the smallest number whose contexts predict held-out rows of their groups as well
        as larger numbers do. It is 1 where nothing conflicts or groups differ by degree only. See
        `selection_`.
    local_model : None, str, callable or scikit-learn regressor, default=None
        The model of one context, with group effects if it has a name other than "mlp":

        - "linear";
        - "smooth": a sum of random Fourier features;
        - "boosting": the same with boosted trees as a further feature;
        - "mlp": a network sized to the data, which also standardizes X and y; the default of 0.1.0.

        None chooses among the first three on rows held out within groups: the simplest, unless a
        richer one predicts them better by a standard error; see `local_model_`. It trains networks
        ("mlp") where every group is a single row, where X has more than 100 columns or names items,
        and where a parameter of network training (`allocation`, `temperature`, `init`, `n_init`,
        `loss`, `optimizer`, ..., `callbacks`) is not at its default. Where groups have fewer than
        six rows on average, it also does so if the contexts of the surrogate search predict
        held-out rows clearly better.

        Or a factory `(input_shape, n_outputs) -> torch.nn.Module`, whose modules get X and y as
        they are; it must be a function or class, not a lambda, if the estimator is pickled. Or any
        scikit-learn regressor.
    group_effects : {"auto", "intercept", "slopes"} or None, default="auto"
        How groups may deviate from their context by degree, as random effects: not at all (None,
        as in the paper), by an offset, by an offset and slopes of up to eight columns that vary
        within groups, or by what the restricted likelihood asks for, which may bend along a column.
        Networks and scikit-learn models have no effects, and refuse "intercept" and "slopes".
    allocation : {"annealed", "hard", "sampled", "soft"} or rule, default="annealed"
        How groups are allocated to contexts: "annealed" starts soft and ends hard, "hard" is LEAF
        as published, "sampled" is LEAF-EM, "soft" is textbook EM. Or pass an allocation rule.
    temperature : float or "auto", default="auto"
        Temperature of the allocation, in units of the loss (of the variance of y for "mlp").
    init : {"auto", "conflict", "seeded", "random"}, default="auto"
        How starts are made. "conflict" finds contexts from the conflicts in the data, with smooth
        surrogate models in closed form, before anything is trained; it falls back to random starts
        where they explain too little. "seeded" does the same, but starts each further context with
        groups that the contexts so far explain poorly, like k-means++. "auto" is "conflict" for
        the annealed rule.
    n_init : int or "auto", default="auto"
        Number of starts; the best one is kept. "auto" makes five starts of small networks, which
        run side by side, and one of large networks; four of scikit-learn models, or one where they
        are scored out of fold.
    loss : {"auto", "squared", "robust"} or loss object, default="auto"
        Loss of networks. "auto" is the squared error. "robust" (Huber) is linear beyond a tenth of
        the standard deviation of y, which limits the influence of extreme rows. Modules from a
        factory get y as it is: pass `Huber(scale=...)` in the units of y.
    optimizer : {"adamw", "adam", "sgd"} or callable, default="adamw"
        Optimizer of networks, or a callable `(parameters, lr=...)` such as `torch.optim.RMSprop`.
    learning_rate : float, default=0.003
        Learning rate of the optimizer.
    schedule : {"cosine", "linear", "constant"} or callable, default="cosine"
        How the learning rate decreases during training.
    max_epochs : int or "auto", default="auto"
        Passes over the groups. By default about 2,000 steps and at least 20 passes, once to find
        the contexts and once more for the refresh. For scikit-learn local models: refits of a
        start, 30 by default, or 20 out of fold. Each refit fits `n_contexts` models, and five
        times as many out of fold.
    groups_per_step : int, default=32
        Groups in an optimizer step.
    rows_per_group : int or None, default=32
        Maximum number of rows of a group in a step, sampled again in each pass.
    max_grad_norm : float or None, default=None
        Clip the gradient of each local model to this norm.
    trim : float, default=0.0
        Share of the rows of each group, at least 0 and less than 0.5, that is ignored when its
        context is chosen, so that a few wrong rows do not determine it: for each local model the
        rows with the largest loss. The number is rounded down; groups of fewer than `1 / trim`
        rows keep all rows. Local models are still trained on all rows.
    tol, n_iter_no_change : float, int or None, default=1e-4, 20
        Stop when the objective has not decreased by a share of `tol` for this many passes. None
        disables early stopping.
    refresh : bool, default=True
        After annealing, train new networks on the final allocation. They have never seen labels of
        other contexts.
    out_of_fold : bool or "auto", default="auto"
        Score groups only with scikit-learn models that were not trained on them. "auto" does so
        where the models memorize their rows.
    callbacks : list of leaflearn.core.training.Callback, default=None
        Called after every step and every epoch when networks are trained (local_model="mlp", or a
        factory). They do not change which local model is chosen.
    device : str, default="auto"
        Device of the networks.
    random_state : int, RandomState instance or None, default=None
        Seed. The same seed on the same machine gives the same fit.
    verbose : int, default=0
        1 shows a progress bar with loss and usage.

    Attributes
    ----------
    n_contexts_ : int
        Number of contexts.
    groups_ : ndarray of shape (n_groups,)
        The labels of the groups, sorted where they can be compared.
    contexts_ : ndarray of shape (n_groups,)
        The context of each group. Contexts are numbered by decreasing usage.
    probabilities_ : ndarray of shape (n_groups, n_contexts_)
        Posterior over the contexts of each group.
    usage_ : ndarray of shape (n_contexts_,)
        Share of groups in each context.
    local_models_ : list
        The fitted local models.
    local_model_ : str or object
        The local model that was chosen, "linear", "smooth", "boosting" or "mlp"; `local_model` if
        it was given.
    priors_ : ndarray of shape (n_contexts_,)
        With local models "linear", "smooth" and "boosting": share of each context.
    noise_ : ndarray of shape (n_contexts_, n_outputs)
        Likewise: variance of a row around the mean of its context and the effects of its group.
    group_effects_ : ndarray of shape (n_groups, n_outputs, n_effects)
        Likewise: the expected effects of each group in its context, on standardized columns; the
        first is the offset.
    effect_variances_ : ndarray of shape (n_contexts_, n_outputs, n_effects)
        Likewise: their variances.
    empirical_error_ : float
        Mean over groups of the mean loss under the best local model.
    history_ : dict of arrays
        One entry per epoch, or per refit: epoch, loss, changed, usage, temperature, seconds; for
        networks also learning_rate.
    restarts_ : list of dict
        The outcome of every start: stage, error, kept, n_iter, converged, the `curve` of its
        losses and the `contexts` of the groups, in the numbering of that start. The stage is
        "given" if it started from contexts found in the data before training; otherwise
        "training", or "search" and "refresh" where new networks were trained on the result of the
        search, and then one start of each may be kept. The starts that contexts were chosen from
        come first, then those of the refresh, then those of a stage that was discarded, where none
        is kept.
    best_restart_ : int
        Index of the start that was kept, among those that contexts were chosen from.
    context_order_ : ndarray of shape (n_contexts_,)
        The number that each context had during training, as callbacks saw it.
    n_iter_ : int
        Epochs, or refits, of the start that was kept.
    converged_ : bool
        Whether the fit looks right: the allocation converged, neither another allocation nor one
        more context explains held-out groups much better, equally good starts agree, local models
        explain more than a constant does, and networks do not deviate from smooth models between
        their rows. Otherwise a `RecoveryWarning` names the problem and what to do. With group
        effects: whether the posterior of the groups converged.
    stability_ : float
        Agreement with the fit of that start, among the equally good ones, that agrees least: the
        share of groups in the same context, weighted by how clear their contexts are. `prune` and
        `merge` determine it again, like `converged_`, where they removed a context, from the rows
        in `replay_buffer_` and without the other starts, which had other contexts. `partial_fit`
        changes neither of them, and none of the three methods changes `restarts_`.
    init_ : str
        How the start was made, and why.
    outliers_ : ndarray of shape (n_samples,)
        Rows that seem to belong to another context than their group. They were excluded from the
        fit. None are excluded where there are only few.
    replay_buffer_ : leaflearn.core.grouped_data.GroupedData or None
        Training rows kept for `prune`, `merge` and `partial_fit`: at most 2,000, from groups of
        each context in turn. They are pickled and saved with the estimator. Set it to None to
        discard them; the three methods can train no model then.
    selection_ : dict of arrays
        Numbers of contexts that were tried before training, and how well they did: n_contexts,
        error (of groups under the best model that was not trained on them), held_out (of rows in
        the context that the other rows of their group chose) and train_error, in units of the
        variance of the targets; aic, bic and icl of the smooth surrogate models as a mixture of
        Gaussian regressions. Where inputs name items, mean targets per item replace the smooth
        models, and there are only the first three. All are empty where nothing was tried.

        With local models "linear", "smooth" and "boosting" it has one entry per candidate instead:
        n_contexts, has_effects, has_own_means (or one mean function that contexts share, with
        differences in the columns that have effects), log_density (of held-out groups, on average)
        and bic.

        Where the local model was chosen too: local_model, the candidates; local_model_error, the
        mean squared error of rows held out within groups in one context, in units of the variance
        of the targets, with residuals of at most six median ones; and row_error, that of the fit in
        closed form without this bound, as arithmetic and geometric mean over the groups. If
        networks were trained in the end, the entries are those of the first paragraph.
    fitted_state_ : FittedState
        Everything that was found about the contexts, as one immutable value. The attributes above
        are taken from it.
    input_shape_ : tuple of int
        Shape of a row of `X`.
    input_range_ : ndarray of shape (2, n_features) or None
        The least and the largest value of each column of `X`. `predict` and `identify` warn about
        rows that are beyond it by more than its width. None for images and sparse matrices.
    y_shape_ : tuple of int
        Shape of a target: `()`, or `(n_outputs,)`.
    fingerprint_ : str
        Checksum of the training data.

    Examples
    --------
    Two kinds of sites measure with opposite signs, and which is which was not recorded.

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.normal(size=(200, 1)), np.repeat(np.arange(20), 10)
    >>> y = np.where(site % 3 == 0, -2.0, 2.0) * X[:, 0]
    >>> leaf = LeafRegressor(n_contexts=2, local_model=LinearRegression(), random_state=0)
    >>> leaf = leaf.fit(X, y, groups=site)
    >>> leaf.predict_each([[1.0]]).round(3).tolist()
    [[2.0, -2.0]]
    >>> leaf.identify([[1.0], [3.0]], [-2.0, -6.0]).context
    array([1])
    """

    def _check_y(self, y: Any, reset: bool) -> NDArray[np.float64]:
        values = check_regression_y(y, type(self).__name__)
        if reset:
            values = self._drop_axis_of_single_output(values)
            self.y_shape_ = values.shape[1:]
        elif np.prod(values.shape[1:]) != np.prod(self.y_shape_):
            raise ValueError(
                f"y has shape {values.shape}, but {type(self).__name__} was fitted with "
                f"{int(np.prod(self.y_shape_))} outputs."
            )
        return values.reshape(len(values), -1)

    def _drop_axis_of_single_output(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Targets of shape (N,) where local models accept no others."""
        if values.ndim == 1 or self.__sklearn_tags__().target_tags.multi_output:
            return values
        if values.shape[1] > 1:
            raise ValueError(
                f"y has {values.shape[1]} outputs, but local_model={self.local_model!r} predicts "
                "one; fit one estimator for each."
            )
        return column_or_1d(values, warn=True)

    def predict(
        self, X: Any, context: Any = None, groups: Any = None, return_std: bool = False
    ) -> Any:
        """Predict in a context; without `context` and `groups`, in the most used one (context 0).

        With group effects, predictions for groups (`groups`, or an `Identification`) are averaged
        over the posterior of their contexts and include their effects.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        context : int, array of shape (n_samples,) or Identification, default=None
            The context of all rows, of each row, or of each group as returned by `identify` (joined
            to the rows by `groups`).
        groups : array of shape (n_samples,), default=None
            Without `context`: training groups. A group that is not known is an error; with group
            effects, it is predicted without effects and with the shares of the contexts, and a
            warning says how many there are.
        return_std : bool, default=False
            Also return the standard deviation of a new row around its prediction: noise, uncertain
            effects and uncertain contexts. Only with group effects.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions; with `return_std`, a pair of such arrays.
        """
        if not return_std:
            return super().predict(X, context, groups)
        check_is_fitted(self, "local_models_")
        if not self._has_effects:
            raise ValueError(
                "return_std=True needs a model of the noise; fit with local_model='linear' or "
                "'smooth'."
            )
        X = check_X(self, X, reset=False, engine=self._engine)
        self._warn_about_far(X)
        mean, variance = self._predict_distribution(X, context, groups)
        return self._finish(mean), self._finish(np.sqrt(variance))

    def _finish(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return outputs.reshape(*outputs.shape[:-1], *self.y_shape_)

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Coefficient of determination.

        With `groups`, every second row of a group identifies its context, and the other rows are
        scored. Groups of a single row, and all rows without `groups`, are scored in the most used
        context.

        Parameters
        ----------
        X, y
            Labelled rows.
        groups, sample_weight : array of shape (n_samples,), default=None
            The group and the weight of each row.

        Returns
        -------
        float
            At most 1; the best constant prediction has 0.
        """
        return self._score(r2_score, X, y, groups, sample_weight)

    def _posterior_temperature(self, state: FittedState, data: GroupedData) -> float:
        """Twice the residual variance: squared errors as a Gaussian log-likelihood."""
        variance = state.scores.min(1).sum() / len(data.y)  # of the residuals, per row and output
        # A row's loss is the mean over its outputs, its log-likelihood a sum over them.
        return 2.0 * max(variance, MIN_NOISE * state.constant_loss) / data.n_outputs

    def _empirical_error(self, state: FittedState, data: GroupedData | None) -> float:
        """The squared error in the units of y.

        For other losses, and for modules from a factory, the training loss.
        """
        mean_losses = state.scores.min(1) / state.sizes
        if self._engine == "module" or (
            self._engine != "closed_form" and self.loss not in ("auto", "squared")
        ):
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
        # The problems of scikit-learn's checks have no contexts, so that two fit them poorly.
        tags.regressor_tags.poor_score = True
        tags.target_tags.multi_output = (
            self._engine != "refit" or get_tags(self.local_model).target_tags.multi_output
        )
        return tags
