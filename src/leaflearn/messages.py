"""Warnings and errors as values: one class per message, with a code and the fields it reports.

`str(message)` is the sentence for Python users. The command line renders the same values with its
own options in `cli/messages.py`; the report groups them by `about`. Nothing parses message text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

MESSAGES: dict[str, type[Message]] = {}


@dataclass(frozen=True)
class Message:
    """One thing to report.

    Every subclass has a `code`, which model folders store, and says whether it is about the
    `"fit"`, the `"data"` or single `"cells"`.

    Examples
    --------
    >>> message = TryMoreContexts(n_contexts=3, n_fitted=2)
    >>> str(message)
    '3 contexts predict held-out rows significantly better than 2; try n_contexts=3.'
    >>> message_from_json(message_to_json(message)) == message
    True
    """

    code: ClassVar[str]
    about: ClassVar[str] = "fit"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        MESSAGES[cls.code] = cls


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


class MessageError(ValueError):
    """An error whose sentence depends on where it is read: in Python or on the command line."""

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True)
class SavedText(Message):
    """A sentence of version 0.1.0, of which no fields were stored."""

    code = "saved-text"
    text: str

    def __str__(self) -> str:
        return self.text


# ---- the fit ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FitMayBeWrong(Message):
    """The diagnostics of a fit found problems."""

    code = "fit-may-be-wrong"
    problems: tuple[Message, ...]

    def __str__(self) -> str:
        return f"The fit may not be right. {' '.join(map(str, self.problems))}"


@dataclass(frozen=True)
class SingleRowGroups(Message):
    """Every group has one row, so that contexts cannot be identified."""

    code = "single-row-groups"
    is_classifier: bool

    def __str__(self) -> str:
        exception = ", unless every context has labels of its own" if self.is_classifier else ""
        return (
            "Every group has a single row, and contexts cannot be identified from single rows"
            f"{exception}; pass groups= (annotator, site, session, ...) so that rows known to share"
            " a context stay together. In a pipeline or search, groups are passed on only with "
            "sklearn.set_config(enable_metadata_routing=True)."
        )


@dataclass(frozen=True)
class StillMoving(Message):
    """The allocation had not converged when the fit ended."""

    code = "still-moving"

    def __str__(self) -> str:
        return "Groups were still changing contexts when the fit ended; raise max_epochs."


@dataclass(frozen=True)
class StartsDisagree(Message):
    """Equally good starts led to different contexts."""

    code = "starts-disagree"
    agreement: float

    def __str__(self) -> str:
        return (
            f"Starts that explain the groups equally well agree on {100 * self.agreement:.0f} % of "
            "them only; give more rows per group, or more groups."
        )


@dataclass(frozen=True)
class OtherAllocationBetter(Message):
    """The smooth surrogate found an allocation that predicts held-out groups much better."""

    code = "other-allocation-better"
    times: float

    def __str__(self) -> str:
        return (
            f"Another allocation explains held-out groups {self.times:.0f} times better; set "
            "init='conflict', or raise n_init."
        )


@dataclass(frozen=True)
class TryMoreContexts(Message):
    """One context more predicts held-out rows significantly better."""

    code = "try-more-contexts"
    n_contexts: int
    n_fitted: int

    def __str__(self) -> str:
        return (
            f"{self.n_contexts} contexts predict held-out rows significantly better than "
            f"{self.n_fitted}; try n_contexts={self.n_contexts}."
        )


@dataclass(frozen=True)
class NoBetterThanPooled(Message):
    """The contexts predict held-out rows no better than a pooled model."""

    code = "no-better-than-pooled"
    n_contexts: int

    def __str__(self) -> str:
        return (
            f"{self.n_contexts} contexts predict held-out rows no better than one does; there may "
            "be no conflict: try n_contexts=1."
        )


@dataclass(frozen=True)
class Collapsed(Message):
    """All groups ended in one context although several predict held-out rows better."""

    code = "collapsed"
    n_contexts: int

    def __str__(self) -> str:
        return (
            f"All groups are in one context, but {self.n_contexts} contexts predict held-out rows "
            "significantly better than 1; set init='conflict', or raise n_init."
        )


@dataclass(frozen=True)
class NoBetterThanConstant(Message):
    """The local models explain the groups no better than a constant."""

    code = "no-better-than-constant"
    surrogate_share: float

    def __str__(self) -> str:
        return (
            "The local models explain the groups no better than a constant does, while smooth "
            f"surrogate models leave {100 * self.surrogate_share:.2g} % of that loss; give more "
            "rows, raise max_epochs, or try another local_model."
        )


@dataclass(frozen=True)
class OutlierRowsDecide(Message):
    """Outlier rows moved their groups into other contexts."""

    code = "outlier-rows-decide"
    share: float
    moved: float

    def __str__(self) -> str:
        return (
            f"{100 * self.share:.0f} % of the rows seem to belong to another context than their "
            f"group's, and without them {100 * self.moved:.0f} % of the groups would change theirs;"
            " set init='conflict', which excludes such rows, or raise trim."
        )


@dataclass(frozen=True)
class SurrogateGap(Message):
    """Local models are far from smooth surrogate models between their rows."""

    code = "surrogate-gap"
    contexts: tuple[int, ...]
    largest: float

    def __str__(self) -> str:
        which = "context" if len(self.contexts) == 1 else "contexts"
        return (
            f"The local models of {which} {', '.join(map(str, self.contexts))} are up to "
            f"{100 * self.largest:.0f} % of the targets' standard deviation away from smooth "
            "surrogate models that predict held-out groups, so they may fit poorly between the "
            "training rows; give more rows, raise max_epochs, or try another local_model."
        )


@dataclass(frozen=True)
class LabelsDisagree(Message):
    """Label blocks point to other contexts than the fit, where groups are single rows."""

    code = "labels-disagree"
    share: float

    def __str__(self) -> str:
        return (
            f"The labels alone imply another context for {100 * self.share:.0f} % of the rows; set "
            "init='conflict', which starts from them."
        )


@dataclass(frozen=True)
class TooFewAnswers(Message):
    """Yes-or-no answers are too few per group to identify the contexts."""

    code = "too-few-answers"
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
