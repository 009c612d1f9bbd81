"""Warnings and errors as values: one class per message, with a code and the fields it reports.

`str(message)` is the sentence for Python users. The command line renders the same values with its
own options in `cli/messages.py`; the report groups them by `about`. Nothing parses message text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

MESSAGES: dict[str, type[Message]] = {}
MAX_NAMES = 8  # that a sentence lists
ANOTHER_START = "set init='conflict', or raise n_init"
ANOTHER_LOCAL_MODEL = "give more rows, raise max_epochs, or try another local_model"
GROUPS_ADVICE = (
    "pass groups= (annotator, site, session, ...) so that rows known to share a context stay "
    "together. In a pipeline or search, groups are passed on only with "
    "sklearn.set_config(enable_metadata_routing=True)"
)


@dataclass(frozen=True)
class Message:
    """One thing to report.

    Every subclass has a `code`, which model folders store, and says whether it is about the
    `"fit"`, the `"data"` or single `"cells"`. It has a text: either the same for all readers
    (`__str__`), or a `_sentence` with advice, for which Python users get the `advice` of the class.

    Examples
    --------
    >>> message = TryMoreContexts(n_contexts=3, n_fitted=2)
    >>> str(message)
    '3 contexts predict held-out rows significantly better than 2; try n_contexts=3.'
    >>> message_from_json(message_to_json(message)) == message
    True
    """

    code: ClassVar[str]
    about: ClassVar[str]
    advice: ClassVar[str]

    def __init_subclass__(cls, *, code: str, about: str = "fit", advice: str = "") -> None:
        cls.code, cls.about, cls.advice = code, about, advice
        MESSAGES[code] = cls

    def __str__(self) -> str:
        return self.with_advice(self.advice)

    def with_advice(self, advice: str) -> str:
        """The sentence with advice in the words of its reader, which may name fields in braces."""
        return self._sentence(advice.format_map(vars(self)))

    def _sentence(self, advice: str) -> str:
        raise NotImplementedError(f"{type(self).__name__} has no sentence that takes {advice!r}")


def message_to_json(message: Message) -> dict[str, Any]:
    """The code and the fields of a message, as plain values."""
    content = {field.name: _plain(getattr(message, field.name)) for field in fields(message)}
    return {"code": message.code, **content}


def message_from_json(content: str | Mapping[str, Any]) -> Message:
    """The message that was stored; version 0.1.0 stored sentences, which are kept as they are.

    Examples
    --------
    >>> str(message_from_json("Column 'a' is empty."))
    "Column 'a' is empty."
    """
    if isinstance(content, str):
        return SavedText(content)
    values = {name: _message(value) for name, value in content.items() if name != "code"}
    return MESSAGES[content["code"]](**values)


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return message_to_json(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def _message(value: Any) -> Any:
    if isinstance(value, dict):
        return message_from_json(value)
    return tuple(map(_message, value)) if isinstance(value, list) else value


class LeafWarning(UserWarning):
    """A warning of leaflearn; `messages` holds what it reports, as values."""

    def __init__(self, *messages: Message | str) -> None:
        super().__init__(*messages)

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the warning reports."""
        return tuple(SavedText(m) if isinstance(m, str) else m for m in self.args)

    def __str__(self) -> str:
        return " ".join(map(str, self.args))


class RecoveryWarning(LeafWarning):
    """The fit may not be right: the contexts that were found, or the local models."""


class TableWarning(LeafWarning):
    """Something in a table was repaired or left out."""


class InputWarning(LeafWarning):
    """Rows are unlike those that the model was fitted to, so that its results may be wrong."""


class MessageError(ValueError):
    """An error whose sentence depends on where it is read: in Python or on the command line."""

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True)
class SavedText(Message, code="saved-text"):
    """A sentence of version 0.1.0, of which no fields were stored."""

    text: str

    def __str__(self) -> str:
        return self.text


# ---- the fit ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ContextNotGiven(Message, code="context-not-given"):
    """Rows were predicted in the most used of several contexts, because none was given."""

    n_contexts: int

    def __str__(self) -> str:
        return (
            f"Neither context nor groups were given, so all rows are predicted in context 0, the "
            f"most used of {self.n_contexts}. Pass groups= for training groups, context=identify("
            "...) for new ones, or context=0 if this is intended. score takes groups= as well; "
            "pipelines, searches and cross-validation of scikit-learn pass groups on with "
            "sklearn.set_config(enable_metadata_routing=True)."
        )


@dataclass(frozen=True)
class EffectsNotExported(Message, code="effects-not-exported"):
    """ONNX files hold the means of the contexts, without group effects."""

    def __str__(self) -> str:
        return (
            "The exported files predict the mean of each context, without group effects; for "
            "groups whose effects are known, use save and predict(X, groups=...)."
        )


@dataclass(frozen=True)
class UnknownGroups(Message, code="unknown-groups"):
    """Groups without training rows were predicted."""

    n_groups: int
    n_rows: int

    def __str__(self) -> str:
        groups = "1 group is" if self.n_groups == 1 else f"{self.n_groups:,} groups are"
        rows = "1 row" if self.n_rows == 1 else f"{self.n_rows:,} rows"
        return (
            f"{groups} not known; {rows} were predicted without group effects. Identify such "
            "groups from a few labelled rows first: predict(X, context=identify(...), groups=...)."
        )


@dataclass(frozen=True)
class InputsFarOutside(Message, code="inputs-far-outside"):
    """Inputs are beyond the range of the training rows by more than its width.

    `columns` are names, or numbers counted from 0.
    """

    n_far: int
    n_rows: int
    columns: tuple[str | int, ...]

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.columns[:MAX_NAMES]))
        more = len(self.columns) - MAX_NAMES
        shown += f" and {more} more" if more > 0 else ""
        column = "column" if len(self.columns) == 1 else "columns"
        have = "has a value" if self.n_far == 1 else "have values"
        return (
            f"{self.n_far:,} of {self.n_rows:,} rows {have} far outside the training range (by "
            f"more than the width of the range) in {column} {shown}; do not rely on the results "
            "for these rows."
        )


@dataclass(frozen=True)
class FitMayBeWrong(Message, code="fit-may-be-wrong"):
    """The diagnostics of a fit found problems."""

    problems: tuple[Message, ...]

    def __str__(self) -> str:
        return self.join(map(str, self.problems))

    @staticmethod
    def join(problems: Iterable[str]) -> str:
        """The sentence about these problems."""
        return f"The fit may not be right. {' '.join(problems)}"


@dataclass(frozen=True)
class SingleRowGroups(Message, code="single-row-groups", advice=GROUPS_ADVICE):
    """Every group has one row, so that contexts cannot be identified."""

    is_classifier: bool

    def _sentence(self, advice: str) -> str:
        exception = ", unless every context has labels of its own" if self.is_classifier else ""
        return (
            "Every group has a single row, and contexts cannot be identified from single rows"
            f"{exception}; {advice}."
        )


@dataclass(frozen=True)
class StillMoving(Message, code="still-moving", advice="raise max_epochs"):
    """The allocation had not converged when the fit ended."""

    def _sentence(self, advice: str) -> str:
        return f"Groups were still changing contexts when the fit ended; {advice}."


@dataclass(frozen=True)
class StartsDisagree(Message, code="starts-disagree"):
    """Equally good starts led to different contexts."""

    agreement: float

    def __str__(self) -> str:
        return (
            f"Starts that explain the groups equally well agree on {100 * self.agreement:.0f} % of "
            "them only; give more rows per group, or more groups."
        )


@dataclass(frozen=True)
class OtherAllocationBetter(Message, code="other-allocation-better", advice=ANOTHER_START):
    """The smooth surrogate found an allocation that predicts held-out groups much better."""

    times: float

    def _sentence(self, advice: str) -> str:
        return (
            f"Another allocation explains held-out groups {self.times:.0f} times better; {advice}."
        )


@dataclass(frozen=True)
class TryMoreContexts(Message, code="try-more-contexts", advice="try n_contexts={n_contexts}"):
    """One context more predicts held-out rows significantly better."""

    n_contexts: int
    n_fitted: int

    def _sentence(self, advice: str) -> str:
        return (
            f"{self.n_contexts} contexts predict held-out rows significantly better than "
            f"{self.n_fitted}; {advice}."
        )


@dataclass(frozen=True)
class NoBetterThanPooled(Message, code="no-better-than-pooled", advice="try n_contexts=1"):
    """The contexts predict held-out rows no better than a pooled model."""

    n_contexts: int

    def _sentence(self, advice: str) -> str:
        return (
            f"{self.n_contexts} contexts predict held-out rows no better than one does; there may "
            f"be no conflict: {advice}."
        )


@dataclass(frozen=True)
class Collapsed(Message, code="collapsed", advice=ANOTHER_START):
    """All groups ended in one context although several predict held-out rows better."""

    n_contexts: int

    def _sentence(self, advice: str) -> str:
        return (
            f"All groups are in one context, but {self.n_contexts} contexts predict held-out rows "
            f"significantly better than 1; {advice}."
        )


@dataclass(frozen=True)
class NoBetterThanConstant(Message, code="no-better-than-constant", advice=ANOTHER_LOCAL_MODEL):
    """The local models explain the groups no better than a constant."""

    surrogate_share: float

    def _sentence(self, advice: str) -> str:
        return (
            "The local models explain the groups no better than a constant does, while smooth "
            f"surrogate models leave {100 * self.surrogate_share:.2g} % of that loss; {advice}."
        )


@dataclass(frozen=True)
class OutlierRowsDecide(Message, code="outlier-rows-decide"):
    """Outlier rows moved their groups into other contexts."""

    share: float
    moved: float

    def __str__(self) -> str:
        return (
            f"{100 * self.share:.0f} % of the rows seem to belong to another context than their "
            f"group's, and without them {100 * self.moved:.0f} % of the groups would change theirs;"
            " set init='conflict', which excludes such rows, or raise trim."
        )


@dataclass(frozen=True)
class SurrogateGap(Message, code="surrogate-gap", advice=ANOTHER_LOCAL_MODEL):
    """Local models are far from smooth surrogate models between their rows."""

    contexts: tuple[int, ...]
    largest: float

    def _sentence(self, advice: str) -> str:
        which = "context" if len(self.contexts) == 1 else "contexts"
        return (
            f"The local models of {which} {', '.join(map(str, self.contexts))} are up to "
            f"{100 * self.largest:.0f} % of the targets' standard deviation away from smooth "
            "surrogate models that predict held-out groups, so they may fit poorly between the "
            f"training rows; {advice}."
        )


@dataclass(frozen=True)
class LabelsDisagree(Message, code="labels-disagree"):
    """Label blocks point to other contexts than the fit, where groups are single rows."""

    share: float

    def __str__(self) -> str:
        return (
            f"The labels alone imply another context for {100 * self.share:.0f} % of the rows; set "
            "init='conflict', which starts from them."
        )


@dataclass(frozen=True)
class TooFewAnswers(Message, code="too-few-answers"):
    """Yes-or-no answers are too few per group to identify the contexts."""

    who: str
    one: str
    answers: int
    n_contexts: int
    required: int

    def __str__(self) -> str:
        return (
            f"Half of the {self.who} gave at most {self.answers} answers. From yes or no alone, "
            f"{self.n_contexts} contexts cannot be identified with fewer than {self.required} per "
            f"{self.one}; collect more answers, or ask for fewer contexts."
        )


# ---- tables -------------------------------------------------------------------------------------


def list_names(names: Iterable[object]) -> str:
    """The first names in quotation marks, and the number of further ones.

    Examples
    --------
    >>> list_names("abcdefghijkl")
    "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h' and 4 more"
    """
    names = list(names)
    shown = ", ".join(repr(str(name)) for name in names[:MAX_NAMES])
    return shown + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")


@dataclass(frozen=True)
class NotUtf8(Message, code="not-utf8", about="data"):
    """A file is not UTF-8 and was read as Windows-1252."""

    name: str
    byte: int
    line: int

    def __str__(self) -> str:
        return (
            f"'{self.name}' is not UTF-8 (byte 0x{self.byte:02x} in line {self.line}); it was read "
            "as Windows-1252. Check its accents, or save it as UTF-8."
        )


@dataclass(frozen=True)
class UnnamedColumns(Message, code="unnamed-columns", about="data"):
    """Columns of a file have no name; `places` counts columns from 1."""

    places: tuple[int, ...]

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.places[:MAX_NAMES]))
        more = " and others" if len(self.places) > MAX_NAMES else ""
        if len(self.places) == 1:
            return f"Column {shown} has no name and was left out."
        return f"Columns {shown}{more} have no name and were left out."


@dataclass(frozen=True)
class TargetMissing(Message, code="target-missing", about="cells"):
    """Rows without a target were left out."""

    target: str
    n_missing: int
    n_rows: int

    def __str__(self) -> str:
        return (
            f"The target {self.target!r} is missing in {self.n_missing:,} of {self.n_rows:,} rows, "
            "which were left out."
        )


@dataclass(frozen=True)
class GroupMissing(Message, code="group-missing", about="cells"):
    """Rows without a group were left out."""

    group: str
    n_missing: int
    first_row: int

    def __str__(self) -> str:
        return (
            f"The group {self.group!r} is missing in {self.n_missing:,} rows, the first is row "
            f"{self.first_row}; they were left out."
        )


@dataclass(frozen=True)
class UnreadableCells(Message, code="unreadable-cells", about="cells"):
    """Cells of a column of numbers or dates are neither; the first of them is named."""

    column: str
    kind: str
    cell: str
    row: int
    n_cells: int

    def __str__(self) -> str:
        first = f"{self.cell!r} in row {self.row}"
        if self.n_cells == 1:
            return (
                f"Column {self.column!r} holds {self.kind}s, but {first} is not a {self.kind}; "
                "it is treated as missing."
            )
        return (
            f"Column {self.column!r} holds {self.kind}s, but {self.n_cells:,} cells are not "
            f"{self.kind}s, the first is {first}; they are treated as missing."
        )


@dataclass(frozen=True)
class ColumnsLeftOut(Message, code="columns-left-out", about="data"):
    """Columns that were not used, by reason: `columns[i]` for `reasons[i]`."""

    reasons: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        pairs = zip(self.columns, self.reasons, strict=True)
        shown = "; ".join(f"{list_names(columns)} ({reason})" for columns, reason in pairs)
        return f"Columns were left out: {shown}."


@dataclass(frozen=True)
class NoColumnsLeft(Message, code="no-columns-left", about="data"):
    """Every column was left out."""

    left_out: ColumnsLeftOut

    def __str__(self) -> str:
        return f"No column is left to learn from. {self.left_out}"


@dataclass(frozen=True)
class TooManyFeatures(Message, code="too-many-features", about="data"):
    """Only the features with the strongest association with the target are used."""

    n_features: int
    n_used: int

    def __str__(self) -> str:
        return (
            f"The columns give {self.n_features:,} features; the {self.n_used} that are most "
            "strongly associated with the target within the groups are used."
        )


@dataclass(frozen=True)
class TooManyItems(Message, code="too-many-items", about="data"):
    """Only the items with the most answers get a feature each."""

    column: str
    n_items: int
    n_used: int

    def __str__(self) -> str:
        return (
            f"Column {self.column!r} names {self.n_items:,} items; the {self.n_used:,} with the "
            "most answers get a feature each, and all others are treated as one."
        )


@dataclass(frozen=True)
class MayNameItems(
    Message,
    code="may-name-items",
    about="data",
    advice="pass the columns to learn from as features=",
):
    """A column looks like names of items, but columns that vary within an item are informative."""

    column: str
    others: tuple[str, ...]

    def _sentence(self, advice: str) -> str:
        one = len(self.others) == 1
        return (
            f"Column {self.column!r} may name the labelled items, but {list_names(self.others)} "
            f"{'varies' if one else 'vary'} between rows of an item and {'is' if one else 'are'} "
            "associated with the target, so only its most common values get features; to use all "
            f"of its values, {advice}."
        )


@dataclass(frozen=True)
class GroupsShareNoItems(Message, code="groups-share-no-items"):
    """Groups that have no item in common cannot be compared."""

    group: str
    column: str
    n_groups: int
    n_sets: int

    def __str__(self) -> str:
        shared = f"a value of {self.column!r} in common"
        advice = "let several groups label the same items, or add columns that describe them."
        if self.n_sets == self.n_groups:
            return (
                f"No two groups in {self.group!r} have {shared}, so no group can be compared with "
                f"another; {advice}"
            )
        return (
            f"The groups in {self.group!r} fall into {self.n_sets:,} sets without {shared}, so "
            f"contexts of different sets cannot be compared; {advice}"
        )


@dataclass(frozen=True)
class NoGroupColumn(Message, code="no-group-column", about="data", advice="pass group="):
    """No column of groups was given, so that every row is a group."""

    def _sentence(self, advice: str) -> str:
        return (
            "No column of groups was given, so every row is a group of its own; contexts can "
            f"hardly be identified from single rows, {advice} (annotator, site, session, ...) so "
            "that rows known to share a context stay together."
        )


@dataclass(frozen=True)
class OneGroup(Message, code="one-group", about="data"):
    """All rows are in one group."""

    group: str

    def __str__(self) -> str:
        return (
            f"Column {self.group!r} holds a single group, and a group has a single context; "
            "contexts are found by comparing groups."
        )


@dataclass(frozen=True)
class OneRowPerGroup(Message, code="one-row-per-group", about="data"):
    """Every group of the column has one row."""

    group: str

    def __str__(self) -> str:
        return (
            f"Every group in {self.group!r} has one row, and contexts can hardly be identified "
            "from single rows; choose groups of several rows that share a context."
        )


@dataclass(frozen=True)
class LinearModelBetter(
    Message, code="linear-model-better", about="data", advice="try local_model='linear'"
):
    """Linear local models predict held-out rows better than networks."""

    metric: str
    linear: float
    network: float

    def _sentence(self, advice: str) -> str:
        return (
            "Linear models predict held-out rows better than networks here "
            f"({self.metric} {self.linear:.3g} instead of {self.network:.3g}); {advice}."
        )


@dataclass(frozen=True)
class UncertainContexts(Message, code="uncertain-contexts", about="data", advice="`identify`"):
    """The labelled rows of some groups do not determine their contexts."""

    groups: tuple[str, ...]

    def _sentence(self, advice: str) -> str:
        return (
            f"The labelled rows do not determine the context of {list_names(self.groups)}, and the "
            f"most probable one is used; {advice} reports how many more labelled rows are needed."
        )


@dataclass(frozen=True)
class UnknownContexts(Message, code="unknown-contexts", about="data"):
    """The labelled rows of some groups fit no known context."""

    groups: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"The labelled rows of {list_names(self.groups)} fit no known context, so the "
            "predictions may be wrong; fit again with more such rows."
        )


@dataclass(frozen=True)
class UnfamiliarRows(Message, code="unfamiliar-rows", about="data"):
    """Rows of a table are unlike the training table."""

    what: str
    n_rows: int
    n_unfamiliar: int
    n_far: int
    far_columns: tuple[str, ...]
    n_unknown: int
    unknown_columns: tuple[str, ...]

    def __str__(self) -> str:
        parts = []
        if self.n_far:
            have = "1 has a number" if self.n_far == 1 else f"{self.n_far:,} have numbers"
            parts.append(
                f"{have} far outside its range in {list_names(self.far_columns)} (by more than the "
                "width of the range)"
            )
        if self.n_unknown:
            one = self.n_unknown == 1
            have = "1 has an unknown value" if one else f"{self.n_unknown:,} have unknown values"
            parts.append(f"{have} in {list_names(self.unknown_columns)}")
        are = "is" if self.n_unfamiliar == 1 else "are"
        return (
            f"{self.n_unfamiliar:,} of {self.n_rows:,} rows of {self.what} {are} unlike the "
            f"training table: {', '.join(parts)}; do not rely on the results for these rows."
        )


@dataclass(frozen=True)
class ContextNotChosen(
    Message,
    code="context-not-chosen",
    about="data",
    advice="choose one by context=, support= or by_group=True, or pass each=True",
):
    """A model of several contexts was asked for predictions without a choice of context."""

    n_contexts: int

    def _sentence(self, advice: str) -> str:
        return f"The model has {self.n_contexts} contexts; {advice}."


@dataclass(frozen=True)
class FittedWithoutGroups(
    Message, code="fitted-without-groups", about="data", advice="pass context= or each=True"
):
    """Training groups were asked for, but the model has none."""

    def _sentence(self, advice: str) -> str:
        return (
            "The model was fitted without groups, so contexts cannot be looked up by group; "
            f"{advice}."
        )


@dataclass(frozen=True)
class GroupsNotInTraining(
    Message, code="groups-not-in-training", about="data", advice="as support=, or pass each=True"
):
    """Groups are not among the training groups."""

    groups: tuple[str, ...]

    def _sentence(self, advice: str) -> str:
        one = len(self.groups) == 1
        return (
            f"{'Group' if one else 'Groups'} {list_names(self.groups)} {'was' if one else 'were'} "
            f"not in the training table; pass a few labelled rows of {'it' if one else 'each'} "
            f"{advice}."
        )


@dataclass(frozen=True)
class GroupsWithoutLabels(
    Message, code="groups-without-labels", about="data", advice="to support=, or pass each=True"
):
    """Groups have no rows in the table of labelled rows."""

    groups: tuple[str, ...]

    def _sentence(self, advice: str) -> str:
        one = len(self.groups) == 1
        return (
            f"{'Group' if one else 'Groups'} {list_names(self.groups)} {'has' if one else 'have'} "
            f"no labelled rows; add a few labelled rows of {'it' if one else 'each'} {advice}."
        )


@dataclass(frozen=True)
class PredictedWithoutEffects(
    Message, code="predicted-without-effects", about="data", advice="support="
):
    """Groups whose effects are not known were predicted.

    `has_support` says whether there is a table of labelled rows, in which they are missing.
    """

    groups: tuple[str, ...]
    n_rows: int
    n_contexts: int
    has_support: bool

    def _sentence(self, advice: str) -> str:
        n, one = len(self.groups), len(self.groups) == 1
        be, have, it = ("was", "has", "it") if one else ("were", "have", "each")
        why = f"{have} no labelled rows" if self.has_support else f"{be} not in the training table"
        rows = "1 row was" if self.n_rows == 1 else f"{self.n_rows:,} rows were"
        how = " and averaged over the contexts" if self.n_contexts > 1 else ""
        return (
            f"{'1 group' if one else f'{n:,} groups'} ({list_names(self.groups)}) {why}; {rows} "
            f"predicted without group effects{how}. A few labelled rows of {it} in {advice} "
            "improve the predictions."
        )


@dataclass(frozen=True)
class NoProbabilities(
    Message, code="no-probabilities", about="data", advice="leave out proba=True"
):
    """Class probabilities were asked for, but the target is a quantity."""

    target: str

    def _sentence(self, advice: str) -> str:
        return (
            f"The target {self.target!r} is a quantity, which has no class probabilities; {advice}."
        )


@dataclass(frozen=True)
class LocalModelCodeMissing(
    Message, code="local-model-code-missing", about="data", advice="local_model={local_model!r}"
):
    """The folder holds weights of networks whose factory is code of the user."""

    local_model: str

    def _sentence(self, advice: str) -> str:
        return (
            f"The model was fitted with {advice}, which is code and not in the folder; pass it "
            "again."
        )


@dataclass(frozen=True)
class LocalModelInFolder(
    Message, code="local-model-in-folder", about="data", advice="leave out local_model="
):
    """A local model was given for a folder that holds its own."""

    def _sentence(self, advice: str) -> str:
        return f"The folder holds the local models of the model; {advice}."


@dataclass(frozen=True)
class ImageFolderMissing(Message, code="image-folder-missing", about="data", advice="as images="):
    """The model was fitted to images, and no folder of images was given."""

    def _sentence(self, advice: str) -> str:
        return f"The model was fitted to images; pass the folder of the new images {advice}."


@dataclass(frozen=True)
class NoImageColumn(Message, code="no-image-column", about="data", advice="as image_column="):
    """No column names files of the folder of images."""

    folder: str

    def _sentence(self, advice: str) -> str:
        return (
            f"No column of the table names files in '{self.folder}'; pass the column that does "
            f"{advice}."
        )
