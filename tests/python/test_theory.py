# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What docs/theory.md states, where no other test shows it. `close` allows for the rounding errors of double alone; where
numbers are sampled, tolerances are derived from the sampling error, or are wider than what other seeds differ by."""

import itertools
import pathlib
import re
import sys

import numpy
import pytest

import adasum

norm = numpy.linalg.norm
close = dict(rtol=1e-12, atol=1e-12)
root = pathlib.Path(__file__).resolve().parents[2]


def tree(gradients):
    return adasum.tree(list(gradients))[0]


def cosine(a, b):
    return a @ b / norm(a) / norm(b)


def orthogonal(random, size):
    return numpy.linalg.qr(random.normal(size=(size, size)))[0]


def both_orders(gradients, hessians):
    """The steps that are optimal along each gradient, and the mean over all orders of what SGD by such rates moves, if the
    losses are quadratic: the gradient at w is g + H w."""
    rates = [g @ g / (g @ h @ g) for g, h in zip(gradients, hessians)]
    ends = []
    for order in itertools.permutations(range(len(rates))):
        w = numpy.zeros_like(gradients[0])
        for i in order:
            w = w - rates[i] * (gradients[i] + hessians[i] @ w)
        ends.append(-w)
    return [rate * g for rate, g in zip(rates, gradients)], numpy.mean(ends, axis=0)


def off(result, expected):
    return norm(result - expected) / norm(expected)


def test_page():
    """The page names these tests, and no others."""
    named = re.findall(r"`(\w+)`", (root / "docs/theory.md").read_text())
    here = [name[len("test_"):] for name in globals() if name.startswith("test_") and name != "test_page"]
    assert set(named) - {"code", "test_", "upgrad", "multi_krum"} == set(here)


def test_derivation(random):
    """Hessians along the gradients, H = c g g': exactly the mean of both orders."""
    for c in random.uniform(0.1, 10, size=(20, 2)):
        gradients = random.normal(size=(2, 8)) + random.normal(size=8)
        steps, expected = both_orders(gradients, [x * numpy.outer(g, g) for x, g in zip(c, gradients)])
        numpy.testing.assert_allclose(adasum.pair(*steps), expected, **close)


def test_derivation_of_four(random):
    """The tree of four is not the mean over all orders, but nearer to it than sum and mean."""
    wrong = []
    for _ in range(20):
        gradients = random.normal(size=(4, 20)) + random.normal(size=20)
        steps, expected = both_orders(gradients, [numpy.outer(g, g) / (g @ g) for g in gradients])
        wrong.append([off(result, expected) for result in (tree(steps), sum(steps), sum(steps) / 4)])
    of_adasum, of_sum, of_mean = numpy.median(wrong, axis=0)
    assert 0.04 < of_adasum < min(of_sum, of_mean) / 2


def test_derivation_with_other_hessians(random):
    """Hessians that have nothing to do with the gradients: no nearer than the mean."""
    wrong = []
    for _ in range(300):
        gradients = random.normal(size=(2, 10)) + random.normal(size=10)
        steps, expected = both_orders(gradients, [z @ z.T / 10 for z in random.normal(size=(2, 10, 10))])
        wrong.append([off(result, expected) for result in (adasum.pair(*steps), sum(steps) / 2)])
    of_adasum, of_mean = numpy.median(wrong, axis=0)
    assert of_adasum > of_mean > 0.25


def test_outer_product(random):
    """The expected outer product of gradients of a log-likelihood is the expected Hessian, if the labels are those of the model.
    Softmax of three classes: gradient x (p - e_y)', and the Hessian by central differences, for each label."""
    x, weights = random.normal(size=4), random.normal(size=12)

    def probabilities(w):
        scores = numpy.exp(w.reshape(3, 4) @ x)
        return scores / scores.sum()

    def gradient(w, label):
        return numpy.outer(probabilities(w) - numpy.eye(3)[label], x).ravel()

    step = 1e-5  # differences are off by about step² and by 1e-16 / step
    hessians = [numpy.array([gradient(weights + e, y) - gradient(weights - e, y) for e in step * numpy.eye(12)]) / (2 * step)
                for y in range(3)]
    squares = [numpy.outer(gradient(weights, y), gradient(weights, y)) for y in range(3)]

    def expected(matrices, p):
        return sum(weight * matrix for weight, matrix in zip(p, matrices))

    of_model, other = probabilities(weights), numpy.roll(probabilities(weights), 1)
    numpy.testing.assert_allclose(expected(squares, of_model), expected(hessians, of_model), rtol=0, atol=1e-8)
    assert off(expected(squares, other), expected(hessians, other)) > 0.1


def test_lengths(random):
    """Of equal length: (2 - cos) times the mean. One much shorter: it halves the other's part along it. Of any: no shorter than
    the mean, and along the sum or across it."""
    for c in numpy.linspace(-1, 1, 21):
        a, other = orthogonal(random, 7)[:2] * 3
        b = c * a + numpy.sqrt(1 - c * c) * other
        numpy.testing.assert_allclose(adasum.pair(a, b), (2 - c) * (a + b) / 2, **close)
        numpy.testing.assert_allclose(adasum.pair(1e-9 * a, b), b - a @ b / (a @ a) / 2 * a, rtol=0, atol=1e-8)
        for ratio in (1e-3, 0.1, 0.7, 3):
            result = adasum.pair(a, ratio * b)
            assert norm(result) >= norm(a + ratio * b) / 2 - 1e-12
            assert result @ (a + ratio * b) >= -1e-12
            if c >= 0:
                assert result @ a >= -1e-12 and result @ b >= -1e-12


def test_length_of_many(random):
    for n in range(1, 20):
        for _ in range(20):
            gradients = random.normal(size=(n, 3)) * numpy.exp(random.normal(size=(n, 1)))
            assert norm(tree(gradients)) <= norm(gradients) * (1 + 1e-12)
    frame = orthogonal(random, 20)
    for n in (2, 3, 6, 16):
        lengths = random.uniform(1, 9, size=(n, 1))
        numpy.testing.assert_allclose(tree(frame[:n] * lengths), sum(frame[:n] * lengths), **close)
        numpy.testing.assert_allclose(tree([frame[0]] * n), frame[0], **close)
    parallel = frame[0] * lengths  # of 16
    numpy.testing.assert_allclose(tree(parallel), parallel.mean(axis=0), **close)


def test_result_against_others():
    """Opposed gradients: against one of the two; and of more than two, against their sum."""
    a, b = numpy.array([1.0, 0]), numpy.array([-4.0, 3])
    assert adasum.pair(a, b) @ a < 0
    four = numpy.array([[-3.0, -1], [-3, 1], [2, -3], [2, 3]])
    numpy.testing.assert_allclose(sum(four), [-2, 0])
    numpy.testing.assert_allclose(tree(four), [38 / 65, 0], **close)
    numpy.testing.assert_allclose(tree(numpy.array([[-3.0], [-1], [3]])), [0.5], **close)  # their sum is -1


def test_expectation(random):
    """Of two independent gradients with distributions of their own on few points, by all pairs of points: E[b] - M_a E[b]/2 and
    so on; of one distribution, (2I - M) E[g]."""
    for size in (1, 2, 5):
        of_a, of_b = random.normal(size=(2, size, 3)) + random.normal(size=3)
        of_a, of_b = (list(points) for points in (of_a, of_b))
        for first, second in ((of_a, of_b), (of_a, of_a)):
            m = [numpy.mean([numpy.outer(g, g) / (g @ g) for g in points], axis=0) for points in (first, second)]
            means = [numpy.mean(points, axis=0) for points in (first, second)]
            result = numpy.mean([adasum.pair(a, b) for a in first for b in second], axis=0)
            expected = means[0] - m[1] @ means[0] / 2 + means[1] - m[0] @ means[1] / 2
            numpy.testing.assert_allclose(result, expected, **close)
        assert numpy.trace(m[0]) == pytest.approx(1) and numpy.linalg.eigvalsh(m[0]).min() > -1e-12
        assert 1 - 1e-12 <= result @ means[0] / (means[0] @ means[0]) <= 2 + 1e-12  # the last are of one distribution
    # (2, 0) or (1, 1): the expectation is not along that of the gradients.
    points = numpy.array([[2.0, 0], [1, 1]])
    result = numpy.mean([adasum.pair(a, b) for a in points for b in points], axis=0)
    numpy.testing.assert_allclose(result, [1.75, 0.5], **close)


@pytest.mark.parametrize("noise", [0.1, 1, 3, 30])
@pytest.mark.parametrize("n", [2, 8])
def test_noise(random, n, noise):
    """Gradients with a part in common, of length 1, and independent noise of length `noise` in all of many directions. A level of
    the tree multiplies the part in common by 2 - c and the noise by (2 - c) / √2, c = 1 / (1 + noise²) being their cosine."""
    size, samples = 2000, 100
    common = numpy.eye(size)[0]
    results = numpy.array([tree(common + noise / size ** 0.5 * random.normal(size=(n, size))) for _ in range(samples)])
    expected, of_noise = 1.0, noise ** 2
    for _ in range(n.bit_length() - 1):
        c = expected ** 2 / (expected ** 2 + of_noise)
        expected, of_noise = (2 - c) * expected, (2 - c) ** 2 / 2 * of_noise
    assert of_noise / expected ** 2 == pytest.approx(noise ** 2 / n)  # that of the mean and of the sum
    # Along `common`, an element has the deviation √(of_noise / size). 5 standard errors; and cosines of noise, of about
    # 1/√size each, change a pair's factor by half as much in relative terms, at random, and by 1/size on average.
    tolerance = 5 * (of_noise / size / samples) ** 0.5 + expected * (2 / size + 5 / (size * samples) ** 0.5)
    assert results[:, 0].mean() == pytest.approx(expected, abs=tolerance)
    # The squared length of noise of `size` elements deviates by √(2 / size) in relative terms, and is averaged over samples.
    variance = results.var(axis=0, ddof=1).sum()
    assert variance == pytest.approx(of_noise, rel=5 * (2 / size / samples) ** 0.5 + 4 / size + n / size)


def test_order(random):
    """What docs/theory.md says of orders: what stays, and how far two random orders are apart."""
    gradients = random.normal(size=(8, 30)) + random.normal(size=30)
    result = tree(gradients)
    for same in ([1, 0, 2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 0, 1, 2, 3], [7, 6, 5, 4, 3, 2, 1, 0]):  # both sides of a node
        numpy.testing.assert_allclose(tree(gradients[same]), result, **close)
    assert off(tree(gradients[[0, 2, 1, 3, 4, 5, 6, 7]]), result) > 1e-3
    a, b, c = gradients[:3]
    assert off(adasum.pair(adasum.pair(a, b), c), adasum.pair(a, adasum.pair(b, c))) > 1e-3
    turn = orthogonal(random, 30)
    numpy.testing.assert_allclose(tree(-3 * gradients @ turn), -3 * result @ turn, **close)
    numpy.testing.assert_allclose(tree(numpy.roll(gradients[:6] @ turn, 2, axis=0)),
                                  tree(numpy.roll(gradients[:6], 2, axis=0)) @ turn, **close)


@pytest.mark.parametrize("in_common, spread, apart", [(0, 0, 0.03), (0.1, 0, 0.02), (0.5, 0, 0.008), (0.9, 0, 0.001),
                                                      (0, 1, 0.03), (0.1, 1, 0.05), (0.5, 1, 0.12), (0.9, 1, 0.16)])
def test_how_much_order_matters(random, in_common, spread, apart):
    """Two orders of 16 gradients. in_common: of their squared lengths; spread: the deviation of their lengths' logarithms."""
    differences = []
    for _ in range(60):
        common, own = random.normal(size=1000), random.normal(size=(16, 1000))
        gradients = in_common ** 0.5 * common + (1 - in_common) ** 0.5 * own
        gradients *= numpy.exp(spread * random.normal(size=(16, 1)))
        differences.append(off(tree(random.permutation(gradients)), tree(gradients)))
    assert apart / 1.5 < numpy.median(differences) < 1.5 * apart


def test_momentum(random):
    """Two steps of momentum 0.9: what is combined, gradients or each worker's momenta, makes a difference from the second on."""
    first, second = random.normal(size=(2, 2, 30)) + random.normal(size=30)
    of_gradients = 0.9 * adasum.pair(*first) + adasum.pair(*second)
    assert off(adasum.pair(*(0.9 * first + second)), of_gradients) > 0.01


@pytest.mark.parametrize("name", ["Adam", "Lamb"])
def test_adam_and_lamb(random, name):
    """The first step is as long for a gradient that is 100 times as long. So it gains nothing from orthogonal gradients that
    Adasum adds, unlike Adasum of four workers' steps, which is twice as long."""
    torch = pytest.importorskip("torch")
    sys.path.append(str(root / "examples/studies"))
    from optimizers import Lamb

    size = 4000
    weights = random.normal(size=size)

    def step(gradient):
        w = torch.tensor(weights, requires_grad=True)
        w.grad = torch.tensor(gradient)
        (torch.optim.Adam([w], lr=0.01) if name == "Adam" else Lamb(w, [size], lr=0.01, weight_decay=0)).step()
        return w.detach().numpy() - weights

    gradients = random.normal(size=(4, size))  # orthogonal but for cosines of about 1/√size
    steps = [step(g) for g in gradients]
    one = norm(steps[0])
    assert off(step(100 * gradients[0]), steps[0]) < 1e-3  # for the optimizers' eps
    assert norm(tree(gradients)) == pytest.approx(2 * norm(gradients[0]), rel=5 / size ** 0.5)
    assert norm(step(tree(gradients))) == pytest.approx(one, rel=1e-3)
    assert norm(tree(steps)) == pytest.approx(2 * one, rel=5 / size ** 0.5)
