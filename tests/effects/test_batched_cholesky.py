"""Many small matrices at once: the same as one by one with LAPACK."""

import numpy as np
import pytest

from leaflearn.effects.batched_cholesky import InverseFactors


def matrices(q, n=40):
    z = np.random.default_rng(q).normal(size=(n, 3, q))
    return np.eye(q) + np.swapaxes(z, 1, 2) @ z  #                                  (n, q, q)


@pytest.mark.parametrize("q", [1, 2, 5, 9])
def test_factors_are_those_of_each_matrix(q):
    each = matrices(q)
    factors = InverseFactors.of(np.moveaxis(each, 0, 2))
    inverse = np.linalg.inv(each)
    np.testing.assert_allclose(factors.log_determinant, np.linalg.slogdet(each)[1], atol=1e-12)
    np.testing.assert_allclose(factors.diagonal.T, np.diagonal(inverse, axis1=1, axis2=2))
    vectors = np.random.default_rng(0).normal(size=(q, len(each)))
    white = factors.whiten(vectors)
    solved = factors.unwhiten(white / factors.pivots)
    np.testing.assert_allclose(solved.T, np.linalg.solve(each, vectors.T[..., None])[..., 0])
    np.testing.assert_allclose(
        (white**2 / factors.pivots).sum(0), np.einsum("in,nij,jn->n", vectors, inverse, vectors)
    )


def test_vectors_may_share_a_matrix():
    each = matrices(3)
    factors = InverseFactors.of(np.moveaxis(each, 0, 2)[:, :, None])
    vectors = np.random.default_rng(0).normal(size=(3, 4, len(each)))
    white = factors.whiten(vectors)
    for k in range(4):
        np.testing.assert_allclose(white[:, k], factors.whiten(vectors[:, k : k + 1])[:, 0])
