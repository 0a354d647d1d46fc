# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which tensors adasum.torch takes, among processes: processes.py N python3 -m pytest test_tensors.py

Where one process gives a tensor of another kind, either all results are right, or all processes hear of it."""

import pytest
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

import adasum.torch
from ranks import combined, is_odd_one, require_close, require_same_bits, world

pytestmark = pytest.mark.usefixtures("process_group")


def filled(view, values):
    return view.copy_(values)


grid = torch.arange(1.0, 25.0).reshape(2, 3, 2, 2)
same_elements = {
    "transposed": lambda: grid.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0),
    "channels_last": lambda: grid.contiguous(memory_format=torch.channels_last),
    "with gaps": lambda: filled(torch.zeros(2, 3, 2, 5)[..., 1:4:2], grid),
    "a part of a larger one": lambda: filled(torch.zeros(5, 3, 2, 2)[2:4], grid),
    "negative view": lambda: torch._neg_view(-grid),
    "imaginary part of a conjugate": lambda: torch.complex(grid, -grid).conj().imag,
    "parameter": lambda: torch.nn.Parameter(grid.clone()),
    "requires grad": lambda: grid.clone().requires_grad_(),
    "computed": lambda: grid.clone().requires_grad_() * 1,
    "computed, transposed": lambda: (grid.clone().requires_grad_() * 1).transpose(0, 3).contiguous().transpose(0, 3),
    "plain subclass": lambda: grid.clone().as_subclass(Plain),
    "inference": lambda: inference(grid.clone()),
    "inference, transposed": lambda: inference(grid.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)),
}


class Plain(torch.Tensor):
    """Shows its memory as it is."""


def inference(tensor):
    with torch.inference_mode():
        return tensor * 1


@pytest.mark.parametrize("kind", same_elements)
@pytest.mark.parametrize("check_agreement", [False, True])
@pytest.mark.parametrize("on_all", [False, True])
def test_same_elements_same_result(kind, check_agreement, on_all):
    rank, size = world()
    state = adasum.torch.State(rule="mean", check_agreement=check_agreement)
    for segments in (None, [5, 0, 19]):
        one = same_elements[kind]() if on_all or is_odd_one() else grid.clone()
        assert torch.equal(one.detach().resolve_neg(), grid)
        assert state.reduce(one, segments).wait() is one
        assert torch.equal(one.detach().resolve_neg(), grid)


def test_a_negative_of_which_nothing_is_computed():
    one = torch.tensor([1 + 1j]).conj().imag if is_odd_one() else torch.tensor([-1.0])
    adasum.torch.State().reduce(one).wait()
    assert one.resolve_neg().tolist() == [-1]


def test_segments_follow_the_indices():
    rank, size = world()
    torch.manual_seed(rank)
    mine = torch.randn(4, 6)
    state, expected = adasum.torch.State(), mine.clone()
    state.reduce(expected, [6] * 4).wait()
    one = filled(torch.empty(6, 4).t(), mine)
    state.reduce(one, [6] * 4).wait()
    assert torch.equal(one, expected)


def test_two_reductions_of_one_memory_in_order():
    """Copies of tensors with gaps are made when their turn comes."""
    rank, size = world()
    whole = torch.full((6, 2), rank + 1.0)
    state = adasum.torch.State(rule="sum")
    futures = [state.reduce(whole[:, 0]) for _ in range(3)]
    for future in futures:
        future.wait()
    assert (whole[:, 0] == size * (size + 1) / 2 * size * size).all() and (whole[:, 1] == rank + 1).all()


def test_a_failure_leaves_the_tensor_as_it_was():
    rank, size = world()
    state = adasum.torch.State(nonfinite="raise")
    for make in (lambda: torch.ones(6, 2)[:, 0], lambda: torch.ones(6, dtype=torch.complex64).conj()):
        one = make()
        if is_odd_one():
            one[0] = float("inf")
        before = one.clone()
        with pytest.raises(adasum.NonfiniteError):
            state.reduce(one).wait()
        assert torch.equal(one, before)


def test_autograd_hears_of_the_change():
    """As of any change in place of what a backward pass needs."""
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    adasum.torch.State().reduce(x).wait()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex(dtype):
    """Complex numbers are pairs of real ones, for inner products too."""
    rank, size = world()
    torch.manual_seed(3)
    all_of_them = torch.randn(size, 3, 4, dtype=dtype)
    pairs = [[part.contiguous() for part in torch.view_as_real(one).view(-1).split([8, 16])] for one in all_of_them]
    expected = torch.cat(combined(pairs))
    state = adasum.torch.State()
    for make in (lambda one: one.clone(), lambda one: torch.conj(one.conj().resolve_conj()),
                 lambda one: one.t().contiguous().t()):
        one = make(all_of_them[rank])
        assert state.reduce(one, [4, 8]).wait() is one
        torch.testing.assert_close(torch.view_as_real(one.resolve_conj()).reshape(-1), expected)
    with pytest.raises(adasum.Error, match="12 elements, its segments 24"):
        state.reduce(all_of_them[rank].clone(), [8, 16]).wait()
    assert len(state.reports()[0]["weights"]) == 2


class Scaled(torch.Tensor):
    """Does not show its memory as it is."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        raise KeyError("of the class itself")


class Wrapper(torch.Tensor):
    """Has no memory."""

    @staticmethod
    def __new__(cls):
        return torch.Tensor._make_wrapper_subclass(cls, (4,))

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        raise KeyError("of the class itself")


def freed():
    one = torch.ones(4)
    (one.untyped_storage() if hasattr(one, "untyped_storage") else one.storage()).resize_(0)
    return one


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode().from_tensor(torch.ones(4))


def functional():
    return torch._to_functional_tensor(torch.ones(4))


def of_vmap():
    """A tensor of which each call sees one row, taken out of its call."""
    found = []
    vmap = torch.func.vmap if hasattr(torch, "func") else pytest.importorskip("functorch").vmap
    vmap(lambda one: (found.append(one), one)[1])(torch.ones(2, 4))
    return found[0]


def of_grad():
    found = []
    grad = torch.func.grad if hasattr(torch, "func") else pytest.importorskip("functorch").grad
    grad(lambda one: (found.append(one), one.sum())[1])(torch.ones(4))
    return found[0]


def distributed_tensor():
    tensor = pytest.importorskip("torch.distributed.tensor")
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (world()[1],))
    return tensor.distribute_tensor(torch.ones(4), mesh, [tensor.Replicate()])


def masked():
    return pytest.importorskip("torch.masked").masked_tensor(torch.ones(4), torch.tensor([True, False, True, True]))


refused = {
    "zero": (lambda: torch._efficientzerotensor(4), "ZeroTensor"),
    "meta": (lambda: torch.ones(4, device="meta"), "device meta"),
    "expanded": (lambda: torch.ones(1).expand(4), "share memory"),
    "overlapping": (lambda: torch.ones(3).as_strided((2, 2), (1, 1)), "share memory"),
    "sparse": (lambda: torch.ones(4).to_sparse(), "not dense"),
    "sparse rows": (lambda: torch.ones(2, 2).to_sparse_csr(), "not dense|SparseCsr"),
    "mkldnn": (lambda: torch.ones(4).to_mkldnn(), "not dense|Mkldnn"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8), "Quantized"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(3)]), "Nested"),
    "freed": (freed, "has been freed"),
    "class with functions": (lambda: torch.ones(4).as_subclass(Scaled), "is a Scaled"),
    "class without memory": (Wrapper, "is a Wrapper"),
    "fake": (fake, "is a FakeTensor"),
    "functional": (functional, "Functionalize|FunctionalTensor"),
    "of vmap": (of_vmap, "Batched"),
    "of grad": (of_grad, "GradWrapper"),
    "distributed": (distributed_tensor, "is a DTensor"),
    "masked": (masked, "is a MaskedTensor"),
    "uninitialized": (torch.nn.UninitializedParameter, "is a UninitializedParameter"),
    "bool": (lambda: torch.ones(4, dtype=torch.bool), "holds Bool"),
    "integer": (lambda: torch.ones(4, dtype=torch.int32), "holds Int"),
}


@pytest.mark.parametrize("kind", refused)
@pytest.mark.parametrize("has_plan", [False, True])
def test_refused_by_all(kind, has_plan):
    make, message = refused[kind]
    state, good = adasum.torch.State(), torch.ones(4)
    if has_plan:
        state.reduce(good).wait()
    wrong = make()
    if is_odd_one():
        with pytest.raises(adasum.BadInput, match=message):
            state.reduce(wrong).wait()
    else:
        with pytest.raises(adasum.CommunicationError):
            state.reduce(good).wait()
    assert (state.reduce(good).wait() == 1).all()


class Complex(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.of_complex = torch.nn.Parameter(torch.randn(4, 2, dtype=torch.complex64))
        self.of_real = torch.nn.Parameter(torch.randn(3))

    def forward(self, x):
        return (self.of_complex * x).abs().square().sum() + (self.of_real * x[0, 0].real).square().sum()


@pytest.mark.skipif(torch.__version__ < "2", reason="this PyTorch cannot broadcast complex parameters over gloo")
@pytest.mark.parametrize("per_layer, rule", [(True, "adasum"), (False, "adasum"), (True, "multi_krum:byzantine=0")])
def test_complex_parameters(per_layer, rule):
    rank, size = world()

    def batch_of(rank):
        torch.manual_seed(rank + 7)
        return torch.randn(4, 2, dtype=torch.complex64)

    def gradients_of(rank):
        model = Complex()
        model(batch_of(rank)).backward()
        return [torch.view_as_real(one.grad) if one.is_complex() else one.grad for one in model.parameters()]

    ddp = DistributedDataParallel(Complex(), bucket_cap_mb=0.0001)
    ddp.register_comm_hook(adasum.torch.State(rule=rule, per_layer=per_layer), adasum.torch.hook)
    for _ in range(3):
        ddp.zero_grad()
        ddp(batch_of(rank)).backward()
        found = [torch.view_as_real(one.grad) if one.is_complex() else one.grad for one in ddp.parameters()]
        require_same_bits(found)
        require_close(found, combined([gradients_of(other) for other in range(size)], rule, per_layer and rule == "adasum"))


class Embedding(torch.nn.Module):
    def __init__(self, sparse=True):
        super().__init__()
        torch.manual_seed(1)
        self.embedding = torch.nn.Embedding(50, 4, sparse=sparse)
        self.linear = torch.nn.Linear(4, 1)

    def forward(self, words):
        return self.linear(self.embedding(words)).square().sum()


def words_of(rank, step):
    """Some that others have as well, one of them twice; in step 2, none that others have."""
    return torch.tensor([3, 3, rank + 10, (7 * rank + step) % 5 + 20] if step < 2 else [rank, rank + 30])


def gradients_of_words(rank, step):
    model = Embedding(sparse=False)
    model(words_of(rank, step)).backward()
    return [one.grad for one in model.parameters()]


@pytest.mark.parametrize("check_agreement", [False, True])
@pytest.mark.parametrize("rule", ["adasum", "mean"])
def test_sparse_gradients(rule, check_agreement):
    """Each row is combined by itself; the result has the rows that any process has."""
    rank, size = world()
    ddp = DistributedDataParallel(Embedding())
    state = adasum.torch.State(rule=rule, check_agreement=check_agreement)
    ddp.register_comm_hook(state, adasum.torch.hook)
    optimizer = torch.optim.SparseAdam([ddp.module.embedding.weight], lr=1e-12)  # the weights stay what they are
    for step in range(4):
        ddp.zero_grad()
        ddp(words_of(rank, step)).backward()
        gradients = [gradients_of_words(other, step) for other in range(size)]
        rows = combined([list(of_rank[0]) for of_rank in gradients], rule)
        found = [one.grad for one in ddp.parameters()]
        assert found[0].is_sparse
        used = sorted({int(word) for other in range(size) for word in words_of(other, step)})
        assert found[0].coalesce().indices()[0].tolist() == used
        require_same_bits([found[0].to_dense(), *found[1:]])
        require_close([found[0].to_dense(), *found[1:]], [torch.stack(rows), *combined([one[1:] for one in gradients], rule)])
        optimizer.step()
        found[0].mul_(2)  # it is an ordinary tensor
    assert sorted(len(report["weights"]) for report in state.reports()) == sorted([len(used), 2])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize("set_to_none", [True, False])  # PyTorch zeroes a sparse gradient by forgetting its rows
def test_sparse_gradients_of_processes_without_rows(dtype, set_to_none):
    rank, size = world()
    ddp = DistributedDataParallel(torch.nn.Embedding(20, 3, sparse=True, dtype=dtype))
    ddp.register_comm_hook(adasum.torch.State(), adasum.torch.hook)
    for of_odd_one, of_others in (([4, 2], [4]), ([], [4, 4]), ([], []), ([6], []), ([6, 7], [7])):
        ddp.zero_grad(set_to_none=set_to_none)
        ddp(torch.tensor(of_odd_one if is_odd_one() else of_others, dtype=torch.long)).sum().backward()
        found = ddp.module.weight.grad.to_dense()
        others = of_others if size > 1 else []
        require_same_bits([found])
        pairs = [torch.zeros(20, 3, dtype=dtype) for _ in range(size)]
        for row, words in enumerate([others] * (size - 1) + [of_odd_one]):
            for word in words:
                pairs[row][word] += 1
        require_close([found], [torch.stack(combined([list(one) for one in pairs]))])


def test_sparse_gradients_of_which_one_process_has_inf():
    rank, size = world()
    ddp = DistributedDataParallel(Embedding())
    ddp.register_comm_hook(adasum.torch.State(nonfinite="raise"), adasum.torch.hook)
    for step in range(3):
        ddp.zero_grad()
        loss = ddp(words_of(rank, step))
        if step < 2:
            loss.backward()
        else:
            with pytest.raises(Exception, match="[Ii]nf|NaN|finite"):
                (loss * (float("inf") if is_odd_one() else 1)).backward()


def test_sparse_gradients_beside_a_process_that_fails():
    """All hear what one process's function for reports raises, whichever bucket comes first."""
    rank, size = world()

    def show(step, reports):
        if is_odd_one() and step == 3:
            raise KeyError("mine")

    ddp = DistributedDataParallel(Embedding())
    ddp.register_comm_hook(adasum.torch.State(report_every=1, on_report=show), adasum.torch.hook)
    for step in range(3):
        ddp.zero_grad()
        ddp(words_of(rank, step)).backward()
    with pytest.raises((KeyError, RuntimeError), match="'mine'" if is_odd_one() else "rank"):
        ddp(words_of(rank, 0)).backward()


@pytest.mark.parametrize("options", [{"per_layer": False}, {"rule": "multi_krum:byzantine=0"}])
def test_sparse_gradients_and_one_set_of_weights(options):
    ddp = DistributedDataParallel(Embedding())
    ddp.register_comm_hook(adasum.torch.State(**options), adasum.torch.hook)
    with pytest.raises(Exception, match="sparse gradient cannot share one set of weights") as raised:
        ddp(words_of(0, 0)).backward()
    assert "cast" not in str(raised.value)  # DistributedDataParallel got an error, and no tensor that is one


def test_sparse_gradients_and_shards():
    rank, size = world()
    ddp = DistributedDataParallel(Embedding())
    ddp.register_comm_hook(adasum.torch.State(shard=(0, rank)), adasum.torch.hook)
    with pytest.raises(Exception, match="with `shard`, gradients must be dense"):
        ddp(words_of(0, 0)).backward()
