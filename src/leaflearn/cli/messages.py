"""The text of messages on the command line, where advice names options instead of parameters."""

from __future__ import annotations

from functools import singledispatch

from leaflearn import messages
from leaflearn.messages import Message, list_names

ANOTHER_LOCAL_MODEL = "give more rows, or try --local-model linear or boosting"
WAYS_TO_PREDICT = "--context K, --support FEW, --each or --by-group"


@singledispatch
def render(message: Message | str) -> str:
    """The command-line text of a message; text without fields stays as it is.

    Examples
    --------
    >>> from leaflearn.messages import StartsDisagree, TryMoreContexts
    >>> render(TryMoreContexts(n_contexts=3, n_fitted=2))
    '3 contexts predict held-out rows significantly better than 2; try --contexts 3.'
    >>> message = StartsDisagree(agreement=0.5)
    >>> render(message) == str(message)
    True
    """
    return str(message)


# ---- the fit ------------------------------------------------------------------------------------


@render.register
def _(m: messages.FitMayBeWrong) -> str:
    return f"The fit may not be right. {' '.join(map(render, m.problems))}"


@render.register
def _(m: messages.SingleRowGroups) -> str:
    exception = ", unless every context has labels of its own" if m.is_classifier else ""
    return (
        f"Every group has a single row, and contexts cannot be identified from single rows"
        f"{exception}; pass --group (annotator, site, session, ...) so that rows known to share a "
        "context stay together."
    )


@render.register
def _(_: messages.StillMoving) -> str:
    return "Groups were still changing contexts when the fit ended; try another --seed."


@render.register
def _(m: messages.OtherAllocationBetter) -> str:
    return (
        f"Another allocation explains held-out groups {m.times:.0f} times better; try another "
        "--seed."
    )


@render.register
def _(m: messages.TryMoreContexts) -> str:
    return (
        f"{m.n_contexts} contexts predict held-out rows significantly better than {m.n_fitted}; "
        f"try --contexts {m.n_contexts}."
    )


@render.register
def _(m: messages.NoBetterThanPooled) -> str:
    return (
        f"{m.n_contexts} contexts predict held-out rows no better than one does; there may be no "
        "conflict: try --contexts 1."
    )


@render.register
def _(m: messages.Collapsed) -> str:
    return (
        f"All groups are in one context, but {m.n_contexts} contexts predict held-out rows "
        "significantly better than 1; try another --seed."
    )


@render.register
def _(m: messages.NoBetterThanConstant) -> str:
    return (
        "The local models explain the groups no better than a constant does, while smooth "
        f"surrogate models leave {100 * m.surrogate_share:.2g} % of that loss; "
        f"{ANOTHER_LOCAL_MODEL}."
    )


@render.register
def _(m: messages.SurrogateGap) -> str:
    which = "context" if len(m.contexts) == 1 else "contexts"
    return (
        f"The local models of {which} {', '.join(map(str, m.contexts))} are up to "
        f"{100 * m.largest:.0f} % of the targets' standard deviation away from smooth surrogate "
        "models that predict held-out groups, so they may fit poorly between the training rows; "
        f"{ANOTHER_LOCAL_MODEL}."
    )


# ---- tables -------------------------------------------------------------------------------------


@render.register
def _(m: messages.MayNameItems) -> str:
    one = len(m.others) == 1
    return (
        f"Column {m.column!r} may name the labelled items, but {list_names(m.others)} "
        f"{'varies' if one else 'vary'} between rows of an item and {'is' if one else 'are'} "
        "associated with the target, so only its most common values get features; to use all of "
        "its values, name the columns to learn from with --features."
    )


@render.register
def _(_: messages.NoGroupColumn) -> str:
    return (
        "No column of groups was given, so every row is a group of its own; contexts can hardly be "
        "identified from single rows, pass --group (annotator, site, session, ...) so that rows "
        "known to share a context stay together."
    )


@render.register
def _(m: messages.LinearModelBetter) -> str:
    return (
        "Linear models predict held-out rows better than networks here "
        f"({m.metric} {m.linear:.3g} instead of {m.network:.3g}); try --local-model linear."
    )


@render.register
def _(m: messages.UncertainContexts) -> str:
    return (
        f"The labelled rows do not determine the context of {list_names(m.groups)}, and the most "
        "probable one is used; `leaflearn identify` reports how many more labelled rows are needed."
    )


@render.register
def _(m: messages.ContextNotChosen) -> str:
    return f"The model has {m.n_contexts} contexts; choose how to predict: {WAYS_TO_PREDICT}."


@render.register
def _(_: messages.FittedWithoutGroups) -> str:
    return (
        "The model was fitted without groups, so contexts cannot be looked up by group; use "
        "--context K or --each."
    )


@render.register
def _(m: messages.GroupsNotInTraining) -> str:
    one = len(m.groups) == 1
    return (
        f"{'Group' if one else 'Groups'} {list_names(m.groups)} {'was' if one else 'were'} not in "
        f"the training table; pass a few labelled rows of {'it' if one else 'each'} with "
        "--support, or use --each."
    )


@render.register
def _(m: messages.GroupsWithoutLabels) -> str:
    one = len(m.groups) == 1
    return (
        f"{'Group' if one else 'Groups'} {list_names(m.groups)} {'has' if one else 'have'} no "
        f"labelled rows; add a few labelled rows of {'it' if one else 'each'} to the --support "
        "table, or use --each."
    )


@render.register
def _(m: messages.NoProbabilities) -> str:
    return (
        f"The target {m.target!r} is a quantity, which has no class probabilities; leave out "
        "--proba."
    )


@render.register
def _(m: messages.LocalModelCodeMissing) -> str:
    return (
        f"The model was fitted with --local-model {m.local_model}, which is code and not in the "
        "folder; pass it again."
    )


@render.register
def _(_: messages.LocalModelInFolder) -> str:
    return "The folder holds the local models of the model; leave out --local-model."


@render.register
def _(_: messages.ImageFolderMissing) -> str:
    return "The model was fitted to images; pass the folder of the new images with --images."


@render.register
def _(m: messages.NoImageColumn) -> str:
    return (
        f"No column of the table names files in '{m.folder}'; pass the column that does with "
        "--image-column."
    )
