"""The numbers that decide how the columns of a table are used and how a fit to them is checked.

Code reads them as `settings.TABLES.<name>` when it runs, so an ablation can replace `TABLES`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableSettings:
    """How a table becomes features, and when the results are worth a warning.

    Where no source is named, the value is a convention that suits tables from a hundred to a
    million rows; it was not tuned on any data set.

    Parameters
    ----------
    kind_share
        Share of the cells that have to be numbers, or dates, for a column to be of that kind.
        The other cells are treated as missing.
    sampled_cells
        Number of cells from which the kind of a column is determined.
    max_values
        Number of values of a category that get a feature each; a column with more values may name
        items.
    min_value_share
        Share of the rows that a value of a category needs for a feature of its own.
    min_missing_share
        Share of missing values from which a feature says whether the value is missing.
    max_known_values
        Number of values of a category that a model stores to recognize unknown ones.
    prose_words, prose_characters
        Median number of words, or of characters, from which a column of texts is prose and not a
        category.
    min_row_numbers
        Number of rows from which a column 0, 1, 2, ... or 1, 2, 3, ... is taken for row numbers.
    min_shifted_row_numbers
        The same for consecutive numbers that begin anywhere; fewer of them may be years.
    max_label_values, rows_per_label
        A target of whole numbers is a label where it has at most `max_label_values` different
        ones, with `rows_per_label` rows each on average.
    min_ratings
        Consecutive whole numbers from 1 are ratings if there are at least so many; three of them
        are more often codes of classes.
    max_texts
        A target with more different texts than this, and than half of the rows, is refused.
    max_text_components
        Number of components of a truncated SVD of the word counts of a column of text.
    max_text_columns
        Number of columns of text that are used, because each takes an SVD.
    max_indicators
        Number of zero-one features of all categories together.
    max_features
        Number of features that are used; those with the strongest association with the target.
    n_hashed_words
        Number of hash values of words.
    max_items, max_item_cells
        Number of items that get a feature each, and of cells of the table of these features.
    min_single_answers
        Share of the rows of a column of items that are the only answer of their group to the item.
    min_shared_items
        Share of the rows of a column of items whose item several groups labelled.
    max_values_per_item
        A column describes the items where the number of different pairs of item and value is at
        most this multiple of the number of items.
    n_item_splits
        Number of held-out splits on which features of the items are compared with other columns.
    item_penalty_inverse
        `C` of logistic regression, and `1 / alpha` of ridge regression, on features of items: the
        few answers to an item have to be able to move its coefficient.
    max_classes
        Number of classes, most common first, whose association with the features is measured.
    n_shuffles
        Number of permutations of the targets within the groups that estimate what chance gives.
    association_sd
        Standard deviations above chance from which a feature is associated with the target.
    order_sd
        Standard deviations below chance from which neighboring numbers have similar targets, so
        that the numbers are quantities and not names.
    group_level_share
        Share of the variance within the groups below which a feature is a property of the group.
    compared_rows
        Number of rows on which sets of features are compared.
    held_out_rows
        Number of rows on which contexts are compared with a pooled model, each held out once. With
        200 groups it is 100 rows of each, whose mean error is known to a tenth of its spread.
    min_held_out_groups, min_rows_per_held_out_group
        If there are more rows, at least so many of each group are held out, of at least so many
        groups.
    held_out_folds
        Folds in which they are held out, and of which one is used to compare features.
    held_out_work
        Number of rows that models may be fitted to in all folds together; with more than 50,000
        rows there are fewer folds.
    held_out_network_folds
        Folds for networks, which train for a tenth of the steps of a fit in each.
    min_probability
        Smaller probabilities of a label count as this in the choice of a context, so that one row
        does not decide.
    needed_error_ratio
        Features are needed where they reduce the held-out error to this share or less, by more
        than `needed_standard_errors` standard errors.
    needed_standard_errors
        See `needed_error_ratio`.
    min_interval_groups
        Number of groups from which an error has an interval; with fewer it would be too wide to be
        of use.
    few_interval_groups
        Intervals from fewer groups are called approximate.
    interval_level
        Share of tables like this one whose error lies in the interval.
    n_trees
        Number of boosted trees with which features are compared.
    min_effect_groups
        Linear and smooth models have group effects from this many groups on. With fewer, contexts
        can be mistaken for slopes that differ by degree: with slopes 1 and -1, 20 rows per group
        and noise 0.1, two contexts were found in 6, 9, 10 and 10 of 10 data sets with 10, 14, 20
        and 30 groups.
    linear_error_ratio
        Linear models are recommended where their held-out error is below this share of the
        networks' error.
    more_contexts_error_ratio
        More contexts are worth a look where their held-out error is below this share of one
        context's, even if the difference is not significant.

    Examples
    --------
    >>> TABLES.max_values
    20
    """

    kind_share: float = 0.9
    sampled_cells: int = 2000
    max_values: int = 20
    min_value_share: float = 0.01
    min_missing_share: float = 0.05
    max_known_values: int = 10_000
    prose_words: int = 4
    prose_characters: int = 30
    min_row_numbers: int = 20
    min_shifted_row_numbers: int = 200
    max_label_values: int = 10
    rows_per_label: int = 5
    min_ratings: int = 4
    max_texts: int = 20
    max_text_components: int = 8
    max_text_columns: int = 50
    max_indicators: int = 2000
    max_features: int = 100
    n_hashed_words: int = 2**13
    max_items: int = 1000
    max_item_cells: int = 5 * 10**7
    min_single_answers: float = 0.9
    min_shared_items: float = 0.5
    max_values_per_item: float = 1.05
    n_item_splits: int = 3
    item_penalty_inverse: float = 10.0
    max_classes: int = 20
    n_shuffles: int = 20
    association_sd: float = 5.0
    order_sd: float = 3.0
    group_level_share: float = 0.1
    compared_rows: int = 5000
    held_out_rows: int = 20_000
    min_held_out_groups: int = 200
    min_rows_per_held_out_group: int = 10
    held_out_folds: int = 5
    held_out_work: int = 500_000
    held_out_network_folds: int = 3
    min_probability: float = 1e-3
    needed_error_ratio: float = 0.95
    needed_standard_errors: float = 2.0
    min_interval_groups: int = 5
    few_interval_groups: int = 10
    interval_level: float = 0.95
    n_trees: int = 50
    min_effect_groups: int = 20
    linear_error_ratio: float = 0.8
    more_contexts_error_ratio: float = 0.8


TABLES = TableSettings()
