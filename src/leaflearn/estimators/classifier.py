"""`LeafClassifier`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if

from leaflearn.core.grouped_data import GroupedData
from leaflearn.engines.engine import choose_engine
from leaflearn.engines.fitted_state import FittedState
from leaflearn.estimators.base import BaseLeaf, mean_over_groups
from leaflearn.estimators.validation import check_classification_y


def _predicts_probabilities(estimator: LeafClassifier) -> bool:
    is_network = choose_engine(estimator.local_model) != "refit"
    return is_network or hasattr(estimator.local_model, "predict_proba")


class LeafClassifier(ClassifierMixin, BaseLeaf):
    """Classification where the same input has different labels in hidden contexts.

    Every group of rows is allocated to the local model that explains it best, and only that model
    is trained on it.

    Parameters
    ----------
    n_contexts : int or "auto", default="auto"
        Number of contexts. "auto" chooses it: with group effects by the probability of the labels
        of held-out groups; otherwise the smallest number whose contexts predict held-out rows of
        their groups as well as larger numbers do. It is 1 where nothing conflicts or groups differ
        by degree only. See `selection_`.
    local_model : None, str, callable or scikit-learn classifier, default=None
        The model of one context, with group effects if it has a name other than "mlp":

        - "linear": log-odds that are linear in X, as in logistic regression;
        - "smooth": log-odds as a sum of random Fourier features;
        - "boosting": the same with boosted trees as a further feature;
        - "mlp": a network sized to the data, which also standardizes X; the default of 0.1.0.

        None chooses among the first three on rows held out within groups: the simplest, unless a
        richer one predicts them better by a standard error; see `local_model_`. It trains networks
        ("mlp") where every group is a single row, where X has more than 100 columns or names items,
        and where a parameter of network training (`allocation`, `temperature`, `init`, `n_init`,
        `loss`, `optimizer`, ..., `callbacks`) is not at its default. Where groups have fewer than
        six rows on average, it also does so if the contexts of the surrogate search predict
        held-out rows clearly better.

        The first three have one logistic model for two classes; for more, one for each class
        against the others, whose probabilities are scaled to a sum of one.

        Or a factory `(input_shape, n_outputs) -> torch.nn.Module`, whose modules get X as it is and
        return logits; it must be a function or class, not a lambda, if the estimator is pickled.
        Or any scikit-learn classifier, which gets the classes as numbers 0, 1, ... in the order of
        `classes_`.
    group_effects : {"auto", "intercept", "slopes"} or None, default="auto"
        How groups may deviate from their context by degree, as random effects on the log-odds: not
        at all (None, as in the paper), by an offset, by an offset and slopes of up to eight columns
        that vary within groups, or by what the restricted likelihood of least squares on the
        classes' indicators asks for, which may bend along a column. Networks and scikit-learn
        models have no effects, and refuse "intercept" and "slopes".
    allocation : {"annealed", "hard", "sampled", "soft"} or rule, default="annealed"
        How groups are allocated to contexts: "annealed" starts soft and ends hard, "hard" is LEAF
        as published, "sampled" is LEAF-EM, "soft" is textbook EM. Or pass an allocation rule.
    temperature : float or "auto", default="auto"
        Temperature of the allocation, in units of the loss.
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
    loss : {"auto", "cross-entropy", "gce"} or loss object, default="auto"
        Loss of networks. "auto" is cross-entropy. "gce", generalized cross-entropy, limits the
        influence of labels that the model finds very unlikely. It suits data with wrong labels,
        where accuracy matters more than probabilities, which come out overconfident.
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
    classes_ : ndarray of shape (n_classes,)
        The labels, which all contexts share.
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
        Likewise: always 1. `n_outputs` is 1 for two classes, else the number of classes.
    group_effects_ : ndarray of shape (n_groups, n_outputs, n_effects)
        Likewise: the most probable effects of each group in its context, on standardized columns;
        the first is the offset. They add to the log-odds of the second class, or of each class
        against the others.
    effect_variances_ : ndarray of shape (n_contexts_, n_outputs, n_effects)
        Likewise: their variances, which `fit` makes the same in all contexts.
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
        more context explains held-out groups much better, equally good starts agree, and local
        models explain more than a constant does. Otherwise a `RecoveryWarning` names the problem
        and what to do. With group effects: whether the posterior of the groups converged.
    stability_ : float
        Agreement with the fit of that start, among the equally good ones, that agrees least: the
        share of groups in the same context, weighted by how clear their contexts are. `prune` and
        `merge` determine it again, like `converged_`, where they removed a context, from the rows
        in `replay_buffer_` and without the other starts, which had other contexts. `partial_fit`
        changes neither of them, and none of the three methods changes `restarts_`.
    init_ : str
        How the start was made, and why.
    outliers_ : ndarray of shape (n_samples,)
        Rows that seem to belong to another context than their group, and rows whose label the
        rest of their context contradicts. They were excluded from the fit. Of either kind, none
        are excluded where there are only few.
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

        Where every group is a single row and its label identifies its context, it has instead
        n_blocks, the numbers of contexts that the labels were divided among, and mass_variance: the
        variance of the joint probability of the labels of a context, relative to the variance of
        its labels, in the worst context. It is 0 where that probability is the same for all
        inputs, and 1 or more where the labels have nothing in common. The largest number below
        0.25 is chosen, and a number that is given is trusted below 0.5.

        With local models "linear", "smooth" and "boosting" it has one entry per number of contexts
        instead: n_contexts, has_effects and log_density (of the labels of held-out groups, on
        average).

        Where the local model was chosen too: local_model, the candidates; local_model_error, the
        mean squared error of the indicators of the classes on rows held out within groups in one
        context, in units of their variance, with residuals of at most six median ones; and
        row_error, that of the probabilities of the fit in closed form without this bound, as
        arithmetic and geometric mean over the groups. If networks were trained in the end, the
        entries are those of the first paragraph.
    fitted_state_ : FittedState
        Everything that was found about the contexts, as one immutable value. The attributes above
        are taken from it.
    input_shape_ : tuple of int
        Shape of a row of `X`.
    input_range_ : ndarray of shape (2, n_features) or None
        The least and the largest value of each column of `X`. `predict` and `identify` warn about
        rows that are beyond it by more than its width. None for images and sparse matrices.
    fingerprint_ : str
        Checksum of the training data.

    Examples
    --------
    Two kinds of annotators give opposite names to the same side of a line.

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X, annotator = rng.normal(size=(200, 1)), np.repeat(np.arange(20), 10)
    >>> y = np.where((X[:, 0] > 0) == (annotator % 2 == 0), "good", "bad")
    >>> leaf = LeafClassifier(n_contexts=2, local_model=LogisticRegression(), random_state=0)
    >>> leaf = leaf.fit(X, y, groups=annotator)
    >>> sorted(leaf.predict_each([[1.0]])[0].tolist())
    ['bad', 'good']
    >>> leaf.predict([[1.0]], groups=[0])
    array(['good'], dtype='<U4')
    """

    def _check_y(self, y: Any, reset: bool) -> NDArray[np.intp]:
        labels = check_classification_y(y, type(self).__name__)
        if reset:
            all_classes = getattr(self, "_all_classes", None)
            self.classes_, numbers = np.unique(labels, return_inverse=True)
            if all_classes is None:
                return numbers
            self.classes_ = np.unique(check_classification_y(all_classes, type(self).__name__))
            if not np.isin(labels, self.classes_).all():
                missing = labels[~np.isin(labels, self.classes_)].tolist()[0]
                raise ValueError(
                    f"y holds {missing!r}, but classes={self.classes_.tolist()}; name all labels "
                    "in classes."
                )
        known = {label: i for i, label in enumerate(self.classes_.tolist())}
        # -1 for labels that are not in the training data
        numbers = np.array([known.get(label, -1) for label in labels.tolist()], dtype=np.intp)
        is_text = isinstance(self.classes_.tolist()[0], str)
        for new_label in labels[numbers < 0].tolist():
            if isinstance(new_label, str) != is_text:  # "1" for 1 is a mistake, not a new label
                raise ValueError(
                    f"y holds {new_label!r}, but the labels in training were "
                    f"{self.classes_.tolist()}; give labels of the same type."
                )
        return numbers

    def _finish(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        return self.classes_[outputs.argmax(-1)]

    @available_if(_predicts_probabilities)
    def predict_proba(self, X: Any, context: Any = None, groups: Any = None) -> NDArray[np.float64]:
        """Class probabilities in a context; the arguments are those of `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            One column for each of `classes_`.
        """
        return self._predict_in_context(X, context, groups, lambda probabilities: probabilities)

    @available_if(_predicts_probabilities)
    def predict_proba_each(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities in every context.

        Returns
        -------
        ndarray of shape (n_samples, n_contexts_, n_classes)
            Probabilities.
        """
        return self._outputs(X)

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Accuracy.

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
            Between 0 and 1.
        """
        return self._score(accuracy_score, X, y, groups, sample_weight)

    def _is_known(self, y: Any) -> NDArray[np.bool_]:
        return np.isin(np.asarray(y), self.classes_)

    def _posterior_temperature(self, state: FittedState, data: GroupedData) -> float:
        """1 for log-losses, which are log-likelihoods; else from the log-odds of the error rate."""
        if _predicts_probabilities(self):
            return 1.0
        n_rows = len(data.y)
        error = np.clip(state.scores.min(1).sum() / n_rows, 1.0 / (n_rows + 1), 0.5)
        return float(1.0 / max(np.log((1.0 - error) * (data.n_outputs - 1) / error), 1e-3))

    def _empirical_error(self, state: FittedState, data: GroupedData | None) -> float:
        if self._engine not in ("refit", "closed_form"):
            return float((state.scores.min(1) / state.sizes).mean())
        if data is None:
            return float("nan")
        losses = state.local_models.losses(data.X, data.y)
        return mean_over_groups(losses[np.arange(len(data.y)), state.contexts[data.group]], data)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The problems of scikit-learn's checks have no contexts, so that two fit them poorly.
        tags.classifier_tags.poor_score = True
        return tags
