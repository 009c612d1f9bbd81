"""The numbers that steer the engines, each with what it does and where its value comes from."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True)
class TrainingSettings:
    """How networks are trained where the user leaves the choice open.

    Parameters
    ----------
    n_steps
        Optimizer steps of a stage on a small task; more do not help on the three functions.
    min_epochs
        Passes over the groups at least, however many groups there are.
    n_starts
        Starts of a search with small networks, which run side by side at little cost.
    n_starts_known
        The same where the contexts are known and only the initial weights differ.
    start_temperatures
        Factors on the start temperature, in turn over the starts. Soft starts find contexts that
        overlap; the last one, nearly hard, finds many inputs with few rows (decision 0033).
    start_temperature
        Start temperature of annealing, in units of the loss of the best constant prediction.
    paper_temperatures
        Temperatures of the other rules for cross-entropy and for squared error (Appendix D).
    given_share
        Share of a run during which a given allocation is held before groups may change contexts.
    min_kept
        Share of groups that must end in the context they started in, else the start is discarded.
    max_worsening
        How much worse refreshed models may explain the groups, in units of the constant's loss.
    max_changed
        Share of groups that may change contexts in the last epoch of a converged run.
    quick_share, quick_rate
        Share of the epochs, and factor on the learning rate of Adam, when known contexts are
        learned again only to measure held-out losses.
    fine_tuning_steps, fine_tuning_min_epochs
        Steps, and passes at least, when fitted networks are fine-tuned.
    n_few_features, hidden_few, hidden_many
        Widths of the default network: for up to `n_few_features` features, and for more.
    """

    n_steps: int = 2000
    min_epochs: int = 20
    n_starts: int = 5
    n_starts_known: int = 2
    start_temperatures: tuple[float, ...] = (1.0, 2.0, 1.0, 2.0, 1e-3)
    start_temperature: float = 0.5
    paper_temperatures: tuple[float, float] = (1.0, 0.1)
    given_share: float = 0.3
    min_kept: float = 0.9
    max_worsening: float = 0.01
    max_changed: float = 0.01
    quick_share: float = 0.1
    quick_rate: float = 3.0
    fine_tuning_steps: int = 320
    fine_tuning_min_epochs: int = 3
    n_few_features: int = 20
    hidden_few: tuple[int, ...] = (64, 64, 64)
    hidden_many: tuple[int, ...] = (256,)


@dataclass(frozen=True)
class RefitSettings:
    """How scikit-learn models are refitted where the user leaves the choice open.

    Parameters
    ----------
    n_starts, n_starts_out_of_fold
        Starts in sample, and out of fold, where a start costs as many times more as there are
        folds and fails less often.
    max_iter, max_iter_out_of_fold
        Refits of a start at most.
    n_folds
        Folds of the out-of-fold scores. Two are too few: their models share no group and need not
        agree on which context is which.
    min_weight
        A group whose weight is below this share of the heaviest is left out of a refit.
    max_own_loss
        Loss on a model's own groups over its loss on other groups, below which the model is taken
        to memorize its rows, so that groups are scored out of fold (decision 0017).
    tolerance
        Change of the weights below which the allocation has converged.
    revived_share
        Share of a fair share of the groups that an idle context is given, the worst-served ones.
    """

    n_starts: int = 4
    n_starts_out_of_fold: int = 1
    max_iter: int = 30
    max_iter_out_of_fold: int = 20
    n_folds: int = 5
    min_weight: float = 1e-3
    max_own_loss: float = 0.9
    tolerance: float = 1e-3
    revived_share: float = 0.25


@dataclass(frozen=True)
class HeldOutSettings:
    """How held-out rows measure novelty and calibrate the evidence for a context.

    Parameters
    ----------
    alarm_rate
        Share of the sources of known contexts that may be called new: the level of the rank test.
    held_out_share
        Share of the groups of a context that is held out (decision 0024).
    min_groups_to_hold_out
        A context with fewer groups holds out single rows instead of whole groups (decision 0024).
    max_held_out_rows
        At most this many rows are held out per context; more hardly change the ranks.
    min_held_out_rows
        A context with fewer held-out rows uses those of all contexts.
    min_training_share
        Copies of held-out rows are left out of training only where at least this share of the
        context's rows remains.
    negligible_loss
        Losses below this share of the best constant's loss count as equal: 1e-9 and 1e-30 are both
        a perfect fit (decision 0024).
    min_spread
        Lower bound of the standard deviation of the mean rank between sources of a known context;
        no two sources are exactly alike. It makes alarms rarer than `alarm_rate` (decision 0024).
    max_evidence_factor, n_evidence_factors
        Calibration tries this many factors between 1 and the maximum, evenly spaced on a log scale
        (decision 0024). None is below 1, because a few held-out rows may look clearer than they
        are.
    min_probability
        Smaller probabilities of the right context count like this one in calibration, so that a
        single row cannot determine the factor.

    Examples
    --------
    >>> from dataclasses import replace
    >>> round(replace(HELD_OUT, alarm_rate=0.05).novelty_limit, 2)
    1.64
    """

    alarm_rate: float = 0.01
    held_out_share: float = 0.2
    min_groups_to_hold_out: int = 10
    max_held_out_rows: int = 1000
    min_held_out_rows: int = 20
    min_training_share: float = 1 / 3
    negligible_loss: float = 1e-4
    min_spread: float = 0.05
    max_evidence_factor: float = 100.0
    n_evidence_factors: int = 41
    min_probability: float = 1e-12

    @property
    def novelty_limit(self) -> float:
        """The novelty that a source of a known context exceeds with probability `alarm_rate`."""
        return NormalDist().inv_cdf(1.0 - self.alarm_rate)


@dataclass(frozen=True)
class ClosedFormSettings:
    """How linear and smooth local models are fitted.

    Parameters
    ----------
    n_cosines
        Random Fourier features of a smooth model.
    scales
        Lengths over which smooth models vary, in standard deviations of the inputs; the most
        probable one is kept.
    max_slopes
        Columns besides the constant that may have group effects.
    max_rounds
        Rounds of fitting contexts and allocating groups.
    max_change
        A fit has converged when no posterior probability changes by more than this.
    min_groups
        Groups that a context needs to be fitted again.
    min_chosen_groups
        Where the number of contexts is open, a context that ends with fewer groups is dropped.
    rows_per_coefficient
        Rows that a context needs for each coefficient of its mean; with fewer, it shares the mean
        of all groups and differs in the columns that have effects only.
    groups_per_variance
        Groups that a context needs for each variance; with fewer, its effects have the variances
        of all groups relative to its noise.
    min_noise
        Noise, in units of the variance of the targets, below which variances are not estimated
        from residuals, because their squares are rounding errors.
    min_pair_weight
        Posterior below which a group does not count in a context with which it shares a mean.
    min_probability
        Probabilities of classes are at least about this.
    n_row_folds
        Parts of the rows of each group; each is predicted from the others to compare local models.
    error_bound
        Residuals count at most as this many median residuals.
    n_errors
        Standard errors by which a richer local model has to predict held-out rows better.
    max_work
        Rows times fits that a candidate may take to be compared; a named one is always fitted.
    max_groups
        Of more groups, contexts, columns with effects and their variances are found on this many,
        drawn at random; a variance is then known to about 3 %. Means are fitted to all (cost).
    groups_at_once
        Groups whose moments are in memory at the same time when means are fitted to all (cost).

    Examples
    --------
    >>> ClosedFormSettings().max_slopes
    8
    """

    n_cosines: int = 50
    scales: tuple[float, ...] = (0.5, 1.0, 2.0)
    max_slopes: int = 8
    max_rounds: int = 30
    max_change: float = 0.01
    min_groups: float = 0.5
    min_chosen_groups: int = 2
    rows_per_coefficient: float = 5.0
    groups_per_variance: float = 5.0
    min_noise: float = 1e-10
    min_pair_weight: float = 1e-4
    min_probability: float = 0.001
    n_row_folds: int = 3
    error_bound: float = 6.0
    n_errors: float = 1.0
    max_work: float = 3e6
    max_groups: int = 2000
    groups_at_once: int = 1000


@dataclass(frozen=True)
class BoostingSettings:
    """How boosted trees are fitted that enter models in closed form.

    Parameters
    ----------
    n_folds
        Folds of groups, each predicted by trees that did not see it.
    n_bins
        Values of a column that trees distinguish; scikit-learn's limit.
    max_trees, step
        Trees at most; their number, in steps, is the one that predicts held-out groups best.
    n_steps, patience
        Steps that are fitted at once, and at least this many without a better prediction before
        no more trees are fitted.
    learning_rate, max_leaf_nodes, min_samples_leaf
        Of scikit-learn's histogram boosting: slower and smaller trees than its defaults, since
        tables with groups have few rows for each of their differences.

    Examples
    --------
    >>> BoostingSettings().n_folds
    5
    """

    n_folds: int = 5
    n_bins: int = 255
    max_trees: int = 200
    step: int = 10
    n_steps: int = 5
    patience: int = 2
    learning_rate: float = 0.06
    max_leaf_nodes: int = 15
    min_samples_leaf: int = 20

    @property
    def n_fits(self) -> int:
        """Fits of a boosted column: one per fold, and one of all rows."""
        return self.n_folds + 1


@dataclass(frozen=True)
class AnswerSettings:
    """How the number of contexts of classes is chosen.

    Parameters
    ----------
    n_folds
        Parts of the groups; the density of each is measured with models of the others.
    n_held_out_steps, n_steps
        Working responses of a fit without a part of the groups, and of a later round of
        allocation.
    n_errors
        Standard errors by which more contexts have to raise the density of held-out groups.
    min_gain
        Rise of the summed log density of held-out groups that they have to bring besides.
    patience
        Numbers of contexts that may bring no such rise in succession.
    n_variance_rounds, n_rounds
        How often the variances of effects within contexts are estimated by working responses, and
        the rounds of allocation after each.
    effect_factor, max_scalings
        By which the standard deviations of effects are then multiplied, at most this often, as long
        as the answers become more probable.

    Examples
    --------
    >>> AnswerSettings().n_folds
    4
    """

    n_folds: int = 4
    n_held_out_steps: int = 3
    n_steps: int = 2
    n_errors: float = 1.0
    min_gain: float = 3.0
    patience: int = 2
    n_variance_rounds: int = 2
    n_rounds: int = 4
    effect_factor: float = 1.3
    max_scalings: int = 3


@dataclass(frozen=True)
class ChoiceSettings:
    """Which engine fits when no local model is given.

    Parameters
    ----------
    max_features
        Inputs that models in closed form take by default; more are left to networks.
    max_group_size
        Mean rows of a group below which the surrogate search is asked as well.
    clear_share, kind_share
        Its contexts are preferred if they leave at most this share of the error of held-out rows,
        averaged over groups; where values differ in kind, also by their geometric mean.
    least_error
        Errors of groups below it count as equal in the geometric mean, in units of the variance.

    Examples
    --------
    >>> ChoiceSettings().max_group_size
    6.0
    """

    max_features: int = 100
    max_group_size: float = 6.0
    clear_share: float = 0.9
    kind_share: float = 0.8
    least_error: float = 1e-6


TRAINING = TrainingSettings()
CHOICE = ChoiceSettings()
ANSWERS = AnswerSettings()
BOOSTING = BoostingSettings()
CLOSED_FORM = ClosedFormSettings()
REFIT = RefitSettings()
HELD_OUT = HeldOutSettings()
