import warnings

import numpy as np
import pytest

from leaflearn.diagnostics.identifiability import count_answers_needed, warn_about_few_answers
from leaflearn.messages import RecoveryWarning, TooFewAnswers


def test_more_contexts_need_more_answers():
    needed = [count_answers_needed(n) for n in range(1, 10)]
    assert needed == [1, 3, 5, 5, 7, 7, 7, 7, 9]


def test_a_warning_is_given_where_half_of_the_groups_gave_too_few_answers():
    few, enough = np.array([2, 2, 9]), np.array([2, 3, 9])
    with pytest.warns(RecoveryWarning) as caught:
        warn_about_few_answers(few, 2, needed=3, who="workers", one="worker")
    (warning,) = caught
    assert warning.message.messages == (TooFewAnswers("workers", "worker", 2, 2, 3),)
    assert str(warning.message) == (
        "Half of the workers gave at most 2 answers. From yes or no alone, 2 contexts cannot be "
        "identified with fewer than 3 per worker; collect more answers, or ask for fewer contexts."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_about_few_answers(enough, 2, needed=3, who="workers", one="worker")
