"""The text of messages on the command line, where advice names options instead of parameters."""

from __future__ import annotations

from leaflearn import messages
from leaflearn.messages import FitMayBeWrong, Message

ANOTHER_LOCAL_MODEL = "give more rows, or try --local-model linear or boosting"
WAYS_TO_PREDICT = "--context K, --support FEW, --each or --by-group"

# What stands in the place of the advice to Python users.
ADVICE: dict[type[Message], str] = {
    messages.SingleRowGroups: "pass --group (annotator, site, session, ...) so that rows known to "
    "share a context stay together",
    messages.StillMoving: "try another --seed",
    messages.OtherAllocationBetter: "try another --seed",
    messages.TryMoreContexts: "try --contexts {n_contexts}",
    messages.NoBetterThanPooled: "try --contexts 1",
    messages.Collapsed: "try another --seed",
    messages.NoBetterThanConstant: ANOTHER_LOCAL_MODEL,
    messages.SurrogateGap: ANOTHER_LOCAL_MODEL,
    messages.MayNameItems: "name the columns to learn from with --features",
    messages.NoGroupColumn: "pass --group",
    messages.LinearModelBetter: "try --local-model linear",
    messages.UncertainContexts: "`leaflearn identify`",
    messages.ContextNotChosen: f"choose how to predict: {WAYS_TO_PREDICT}",
    messages.FittedWithoutGroups: "use --context K or --each",
    messages.GroupsNotInTraining: "with --support, or use --each",
    messages.GroupsWithoutLabels: "to the --support table, or use --each",
    messages.PredictedWithoutEffects: "the --support table",
    messages.NoProbabilities: "leave out --proba",
    messages.LocalModelCodeMissing: "--local-model {local_model}",
    messages.LocalModelInFolder: "leave out --local-model",
    messages.ImageFolderMissing: "with --images",
    messages.NoImageColumn: "with --image-column",
}


def render(message: Message | str) -> str:
    """The command-line text of a message; text without advice stays as it is.

    Examples
    --------
    >>> from leaflearn.messages import StartsDisagree, TryMoreContexts
    >>> render(TryMoreContexts(n_contexts=3, n_fitted=2))
    '3 contexts predict held-out rows significantly better than 2; try --contexts 3.'
    >>> message = StartsDisagree(agreement=0.5)
    >>> render(message) == str(message)
    True
    """
    if isinstance(message, FitMayBeWrong):
        return message.join(map(render, message.problems))
    if isinstance(message, Message) and type(message) in ADVICE:
        return message.with_advice(ADVICE[type(message)])
    return str(message)
