"""The numbers that steer the search for contexts before training.

Code reads them at call time through the module, `settings.SEARCH.soft_rounds`, so that a test or an
ablation can replace the instance `SEARCH`.

The source of each value is one of these:

suite
    Chosen on the recovery suite, seeds 0 to 29, and evaluated on other seeds, see
    `docs/ideas/recovery.md`.
hand
    Set by hand; no other value was tried systematically.
cost
    Bounds memory and time.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FeatureSettings:
    """How inputs become columns and features.

    Parameters
    ----------
    n_sparse_directions
        Random directions that a sparse matrix with more columns is projected onto (cost).
    max_text_values
        Most frequent values of a text column that get an indicator column each; the other values
        have zeros in all of them (cost).
    n_principal_directions
        Principal directions that are kept of inputs with more columns, such as images (cost).
    n_fourier_features
        Random Fourier features of each scale (hand).
    """

    n_sparse_directions: int = 100
    max_text_values: int = 20
    n_principal_directions: int = 30
    n_fourier_features: int = 50


@dataclass(frozen=True)
class CountSettings:
    """How the number of contexts is chosen.

    Parameters
    ----------
    patience
        The count ends after this many consecutive numbers of contexts without a gain (hand).
    n_standard_errors
        Standard errors that the mean gain on held-out rows must exceed (hand).
    min_gain
        Share of the held-out loss that one more context must save (hand).
    min_loss_ratio
        One more context is also accepted if its fitted loss is this many times lower. Chance alone
        makes it less than two times lower (suite: the rare function was counted as two contexts).
    """

    patience: int = 2
    n_standard_errors: float = 3.0
    min_gain: float = 0.1
    min_loss_ratio: float = 4.0


@dataclass(frozen=True)
class OutlierSettings:
    """When rows count as outliers of their group, and how their losses are bounded.

    Parameters
    ----------
    rounds
        Rounds of refitting with bounded losses (hand).
    tightening
        Share of these rounds over which the bound falls from `first_bound` (hand).
    first_bound
        The bound in the first round, in units of the targets' variance (hand).
    bound
        The bound, in units of the median loss of a row (hand).
    min_loss
        Floor of the median loss, so that data without noise have no outliers, and of the loss that
        the ridge follows in these rounds, in units of the targets' variance (hand).
    min_ratio
        Another context must explain an outlier row this many times better (hand).
    min_share
        Outlier rows are excluded only if they are more than this share of the rows (hand).
    undecidable_size
        Groups of at most this many rows have no outlier rows, because it cannot be decided which
        row is the outlier (by definition).
    max_loss_ratio
        Outlier rows are excluded only if the mean loss of the other rows falls to this share or
        less (suite: contexts that differ in a small region only).
    """

    rounds: int = 25
    tightening: float = 0.6
    first_bound: float = 0.5
    bound: float = 20.0
    min_loss: float = 1e-5
    min_ratio: float = 10.0
    min_share: float = 0.03
    undecidable_size: int = 2
    max_loss_ratio: float = 0.5


@dataclass(frozen=True)
class WrongLabelSettings:
    """When labels count as wrong.

    Parameters
    ----------
    max_rows
        Rows of one kernel ridge regression; larger contexts are judged in parts (cost).
    n_scale_rows
        Rows on which the scale is chosen, because that takes several models (cost).
    scales
        Inverse squared widths of the kernel that are tried, in units of the median squared
        distance; large values allow quick changes (hand).
    n_distance_inputs
        Distinct inputs from which the median distance is computed (cost).
    ridge
        Ridge of the kernel regression; a row has weight 1 (hand).
    max_unexplained
        Contexts whose model leaves more than this share of the labels' variance unexplained are
        not judged (hand).
    min_margin
        A label is suspect if another one is more plausible by at least this much (hand).
    min_ratio
        A label is certainly wrong if another one is also this many times as plausible (hand).
    min_share
        Suspect labels are excluded only if more than this share is certainly wrong. Clean digits
        and opposite labels stay below it (decision 0026).
    """

    max_rows: int = 3000
    n_scale_rows: int = 1000
    scales: tuple[float, ...] = (0.5, 1.0, 2.0, 8.0)
    n_distance_inputs: int = 300
    ridge: float = 0.1
    max_unexplained: float = 0.5
    min_margin: float = 0.3
    min_ratio: float = 10.0
    min_share: float = 0.02


@dataclass(frozen=True)
class LabelBlockSettings:
    """How labels are partitioned into the blocks of contexts, where groups are single rows.

    Parameters
    ----------
    max_rows
        Rows that the label probabilities are learned from. More than `SearchSettings.max_rows`,
        because one regression is enough (cost).
    scale
        Scale of the random Fourier features (hand).
    ridge
        Ridge of the regression of labels on features (hand).
    n_starts
        Random partitions that are improved; the best one is kept (hand).
    max_mass_variance
        Share of its labels' variance that the mass of a block may keep for the blocks to be
        trusted, where the number of contexts is given (hand).
    max_mass_variance_to_count
        The same where the number of contexts is chosen. Fashion product images keep 9 to 13 % with
        the true number of blocks and 100 % with one more (`docs/ideas/recovery.md`).
    min_cut_ratio
        A true block was cut in two if the mass varies this many times more than with fewer blocks
        (hand).
    """

    max_rows: int = 8000
    scale: float = 0.6
    ridge: float = 1.0
    n_starts: int = 30
    max_mass_variance: float = 0.5
    max_mass_variance_to_count: float = 0.25
    min_cut_ratio: float = 2.0


@dataclass(frozen=True)
class ItemSettings:
    """When inputs are names of items, and how contexts are found from mean answers to them.

    Parameters
    ----------
    max_categories
        Inputs with at most this many indicator columns are an ordinary category (hand).
    min_item_share
        Share of the rows that must name an item (hand).
    max_cells
        Larger inputs are not checked for items (cost).
    max_nonzeros
        Sparse inputs with more nonzero cells per row, such as texts, are no items (hand).
    n_checked_rows
        Rows of a first, quick check (cost).
    n_starts
        Starts of the search (hand).
    n_held_out_starts
        Starts of the search in each fold (cost).
    max_losses
        Losses that are computed at once; large data get fewer starts (cost).
    start_temperatures
        Temperatures of the first soft round, in units of the targets' variance, in turn over the
        starts (hand).
    pooled_weight
        Mean answers of a context shrink towards the pooled mean answer as if this many more pooled
        answers had been given, because contexts agree on most items (hand).
    ridges
        Candidates for the number of zero answers by which all means shrink; the best one on
        left-out groups is used (hand).
    n_folds
        Folds of the rows of each group, one of which is held out at a time (hand).
    min_gain
        Share of the held-out loss that one more context must save. Lower than
        `CountSettings.min_gain`, because these rows are held out before the search (hand).
    """

    max_categories: int = 20
    min_item_share: float = 0.5
    max_cells: int = 10**8
    max_nonzeros: int = 20
    n_checked_rows: int = 1000
    n_starts: int = 10
    n_held_out_starts: int = 5
    max_losses: int = 5 * 10**6
    start_temperatures: tuple[float, ...] = (0.25, 0.125)
    pooled_weight: float = 1.0
    ridges: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)
    n_folds: int = 4
    min_gain: float = 0.03


@dataclass(frozen=True)
class SearchSettings:
    """How contexts are searched with smooth surrogate models, and when they are trusted.

    Parameters
    ----------
    max_rows
        Rows that are searched. The groups of the other rows are allocated afterwards (cost).
    max_rows_per_group
        Rows that represent a larger group (cost).
    max_target_columns
        Columns of the targets; more classes are projected onto this many columns (cost).
    scales
        Length scales of the random Fourier features, in units of the inputs' standard deviation
        (suite: 0.15 was added for the rare function, 0.075 for the small region).
    n_starts, n_extra_starts
        Starts at each scale, and further ones at the best scale if its starts disagree (hand).
    min_agreement
        Starts agree if at least this share of them has an error close to the best (hand).
    close_error
        Errors of up to this multiple of the best error are close to it (hand).
    soft_rounds, hard_rounds
        Rounds of annealing, and at most this many rounds of hard allocation after them (hand).
    start_temperatures
        Temperatures of the first soft round, in units of the targets' variance, in turn over the
        starts (suite).
    start_spread
        Standard deviation of the normal draws whose softmax gives the first weights (hand).
    start_loss
        Loss that the first ridge follows, in units of the targets' variance (hand).
    ridge
        Ridge of the surrogate models, in units of the loss so far, so that they become more
        flexible as the contexts separate (suite).
    intercept_ridge
        Ridge of the intercept, in units of the ridge (numerical stability).
    min_loss
        Floor of the loss that the ridge follows, in units of the targets' variance (hand).
    judge_rounds, judge_loss
        Rounds in which the ridge adapts to given contexts, and the loss that its first value
        follows (hand).
    split_merge_rounds
        Rounds of split and merge; 0 turns it off (hand).
    n_freed, n_split, n_random_halves
        In each round, how many models are tried as the one to free, how many as the one to split,
        and how many random halves besides the half that is explained worst (suite for the random
        halves, else hand).
    split_merge_ratio
        A split and merge is kept if the loss falls below this share (hand).
    max_contexts
        Largest number of contexts that is tried where it is not given (cost).
    explained_share
        A number of contexts that leaves less than this share of the pooled model's loss determines
        the scale for all others (hand).
    trusted_share
        A start that leaves less than this share of the pooled model's loss is trusted (hand).
    features, n_contexts, outliers, wrong_labels, label_blocks, items
        Settings of the parts.

    Examples
    --------
    >>> from dataclasses import replace
    >>> replace(SEARCH, scales=(0.3,)).scales
    (0.3,)
    """

    max_rows: int = 2000
    max_rows_per_group: int = 32
    max_target_columns: int = 40
    scales: tuple[float, ...] = (0.075, 0.15, 0.3, 0.6, 1.2)
    n_starts: int = 3
    n_extra_starts: int = 8
    min_agreement: float = 0.5
    close_error: float = 1.05
    soft_rounds: int = 30
    hard_rounds: int = 20
    start_temperatures: tuple[float, ...] = (0.5, 0.25)
    start_spread: float = 2.0
    start_loss: float = 0.5
    ridge: float = 0.1
    intercept_ridge: float = 1e-6
    min_loss: float = 1e-5
    judge_rounds: int = 3
    judge_loss: float = 0.1
    split_merge_rounds: int = 5
    n_freed: int = 2
    n_split: int = 2
    n_random_halves: int = 2
    split_merge_ratio: float = 0.9
    max_contexts: int = 10
    explained_share: float = 0.02
    trusted_share: float = 0.5
    features: FeatureSettings = FeatureSettings()
    n_contexts: CountSettings = CountSettings()
    outliers: OutlierSettings = OutlierSettings()
    wrong_labels: WrongLabelSettings = WrongLabelSettings()
    label_blocks: LabelBlockSettings = LabelBlockSettings()
    items: ItemSettings = ItemSettings()


@dataclass(frozen=True)
class StructureSettings:
    """How the number of contexts is chosen by density.

    Parameters
    ----------
    max_contexts
        Largest number that is tried.
    max_groups
        Candidates are compared on this many groups, drawn at random; the others are allocated
        afterwards. More groups decide no more clearly, and cost more.
    patience
        Numbers that may be worse in succession before no larger one is tried.
    n_folds
        Parts that the groups are divided into; the density of each is measured with the others.
    n_random_starts, n_effect_starts
        Starts of a number of contexts: random ones, and clusters of the groups' effects.
    anneal
        Temperature of random starts at the beginning, per row of a group.
    n_held
        Rounds in which the contexts of a start are held while effects grow.
    n_short_rounds, n_finalists
        All starts are followed for this many rounds, and this many of them to the end.
    min_context_groups, min_context_share
        Groups that the smallest context has to have, as a sum of probabilities: at least this
        number, and this share of all.
    min_margin
        By how much more contexts have to lower the Bayesian information criterion. The likelihood
        ratio of mixtures has a heavier tail than that of regular models; with 5, one context is
        kept in more than 95 % of simulated tables whose groups differ by degree only.
    n_held_folds
        The same when a candidate is fitted again without a part of the groups.
    fixed_ridge
        Ridge of the coefficients that are not shrunk; it only keeps them determined.
    start_probability
        Probability of a group's cluster at the start, besides an equal share of the rest.
    vague_weight, weight_shape
        Weight, in the clusters, of effects that the rows hardly determine; and shape of the gamma
        distribution from which all weights of further clusterings are drawn.
    loose_factor
        A group's own noise is what its effects leave if they are shrunk this much less.
    min_noise_rows
        Rows beyond those that the effects use up, from which a group has a noise of its own.

    Examples
    --------
    >>> StructureSettings().n_folds
    5
    """

    max_contexts: int = 8
    max_groups: int = 300
    patience: int = 2
    n_folds: int = 5
    n_random_starts: int = 4
    n_effect_starts: int = 4
    anneal: float = 0.02
    n_held: int = 5
    n_short_rounds: int = 15
    n_finalists: int = 3
    min_context_groups: float = 1.5
    min_context_share: float = 0.01
    min_margin: float = 5.0
    n_held_folds: int = 3
    fixed_ridge: float = 1e-6
    start_probability: float = 0.9
    vague_weight: float = 0.1
    weight_shape: float = 0.7
    loose_factor: float = 9.0
    min_noise_rows: float = 2.0


SEARCH = SearchSettings()
STRUCTURE = StructureSettings()
