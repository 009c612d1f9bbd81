"""The classifier."""

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

    Every group of rows goes to the local model that explains it best, and only that model learns from it.

    Parameters
    ----------
    n_contexts : int or "auto", default="auto"
        Number of contexts. "auto" reads it off the data, before anything is trained: the smallest number whose contexts foretell held-out
        rows of their groups as well as larger numbers do; 1 where nothing conflicts. See `selection_`.
    local_model : None, callable or scikit-learn classifier, default=None
        What answers in one context: None for a network sized to the data, which also standardises X; a factory
        `(input_shape, n_outputs) -> torch.nn.Module`, which sees X as it is and answers with logits (a function or class, and no
        lambda, where the estimator is to be pickled); or any scikit-learn classifier, which
        sees the classes as numbers 0, 1, ... in the order of `classes_`.
    allocation : {"annealed", "hard", "sampled", "soft"} or rule, default="annealed"
        How groups are shared out: soft at first and hard in the end; LEAF as printed; LEAF-EM; textbook EM; or an object of your own.
    temperature : float or "auto", default="auto"
        Of the allocation, in units of the loss.
    init : {"auto", "conflict", "seeded", "random"}, default="auto"
        How starts are made: "conflict" reads contexts off the disagreement itself, with smooth models in closed form, before anything is
        trained, and goes to random starts where they explain too little; "seeded" does so too, but lets each further context begin with
        groups that are explained badly so far, like k-means++; "auto" is "conflict" for the annealed rule.
    n_init : int or "auto", default="auto"
        Number of starts, of which the best is kept; "auto" makes five of small networks, which run side by side, one of large ones;
        of scikit-learn models four, or one where they are scored out of fold.
    loss : {"auto", "cross-entropy", "gce"} or loss object, default="auto"
        Loss of a network; "auto" is cross-entropy. "gce", generalized cross-entropy, hardly learns from labels that it finds absurd: for
        data with wrong labels, where right and wrong answers matter more than probabilities, which come out too sure.
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
    classes_ : ndarray of shape (n_classes,)
        The labels; all contexts share them.
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
        good starts agree, and local models explain more than a constant does. Where not, a `RecoveryWarning` says what speaks against it
        and what to do.
    stability_ : float
        Share of groups, weighed by how clearly they tell, on which the least agreeing of the equally good starts agrees with the fit.
        Like `converged_` it is found anew where `prune` or `merge` removed a context, from the rows in `replay_buffer_` and without the other
        starts, which had other contexts; `partial_fit` leaves both as they were, and all three leave `restarts_`.
    init_ : str
        How the start was made, and why.
    outliers_ : ndarray of shape (n_samples,)
        Rows that seem to belong to another context than their group's, and rows whose label the rest of their context contradicts; they
        were left out. Of either kind, none are left out where they are few.
    replay_buffer_ : leaflearn.core.grouped_data.GroupedData
        At most 2,000 of the training rows, groups of each context in turn, from which `prune`, `merge` and `partial_fit` learn on. They are
        pickled with the estimator; set it to None to forget them, after which none of the three can train.
    selection_ : dict of arrays
        For 1, 2, ... contexts, as far as they were tried without training: n_contexts, error (of groups under the best model, which has
        not seen them), held_out (of rows in the context that the others of their group chose) and train_error, in units of the targets'
        variance; aic, bic and icl of the smooth models as a mixture of Gaussian regressions. Where inputs name items, whose mean answers
        stand in for smooth models, there are the first three only. All are empty where nothing was tried. Single rows whose labels tell the
        contexts have instead n_blocks, the numbers of contexts that labels were shared out among, and mass_variance: how much of its
        labels' variance the joint probability of a context keeps, in the worst context; 0 where it is the same for all inputs, 1 or more
        where its labels have nothing in common. The largest number below 0.25 is taken, and a number that is given is trusted below 0.5.

    Examples
    --------
    Two annotators call the same side of a line by opposite names.

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X, annotator = rng.normal(size=(200, 1)), np.repeat(np.arange(20), 10)
    >>> y = np.where((X[:, 0] > 0) == (annotator % 2 == 0), "good", "bad")
    >>> leaf = LeafClassifier(n_contexts=2, local_model=LogisticRegression(), random_state=0).fit(X, y, groups=annotator)
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
                stranger = labels[~np.isin(labels, self.classes_)].tolist()[0]
                raise ValueError(
                    f"y holds {stranger!r}, but classes={self.classes_.tolist()}; name all labels in classes."
                )
        known = {label: i for i, label in enumerate(self.classes_.tolist())}
        numbers = np.array(
            [known.get(label, -1) for label in labels.tolist()], dtype=np.intp
        )  # -1: was not there in training
        is_text = isinstance(self.classes_.tolist()[0], str)
        for stranger in labels[numbers < 0].tolist():
            if isinstance(stranger, str) != is_text:  # "1" for 1 is a slip of the pen, and no news
                raise ValueError(
                    f"y holds {stranger!r}, but the labels in training were {self.classes_.tolist()}; give labels of the same type."
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
            Between 0 and 1.
        """
        return self._score(accuracy_score, X, y, groups, sample_weight)

    def _is_known(self, y: Any) -> NDArray[np.bool_]:
        return np.isin(np.asarray(y), self.classes_)

    def _posterior_temperature(self, state: FittedState, data: GroupedData) -> float:
        """1 for log-losses, which are log-likelihoods; else the log-odds of the error rate."""
        if _predicts_probabilities(self):
            return 1.0
        n_rows = len(data.y)
        error = np.clip(state.scores.min(1).sum() / n_rows, 1.0 / (n_rows + 1), 0.5)
        return float(1.0 / max(np.log((1.0 - error) * (data.n_outputs - 1) / error), 1e-3))

    def _empirical_error(self, state: FittedState, data: GroupedData | None) -> float:
        if self._engine != "refit":
            return float((state.scores.min(1) / state.sizes).mean())
        if data is None:
            return float("nan")
        losses = state.local_models.losses(data.X, data.y)
        own = losses[np.arange(len(data.y)), state.contexts[data.group]]
        return mean_over_groups(own, data)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = (
            True  # two contexts are wrong for the plain problems of scikit-learn's checks
        )
        return tags
