// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sparse_rows.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <adasum/core/error.hpp>
#include <adasum/core/message.hpp>
#include <adasum/detail/engine/call_signature.hpp>
#include <adasum/detail/engine/collective_setup.hpp>
#include <adasum/detail/engine/small_exchanges.hpp>

#include "real_numbers.hpp"

namespace adasum::python {
namespace {

std::int64_t product(at::IntArrayRef numbers) {
  std::int64_t result = 1;
  for (const auto number : numbers) result *= number;
  return result;
}

/// Of each row of a coalesced tensor: its place among all rows that there may be.
std::vector<std::int64_t> row_numbers(const at::Tensor& tensor) {
  const auto indices = tensor.indices().cpu().contiguous();
  const auto count = static_cast<std::size_t>(indices.size(1));
  std::vector<std::int64_t> numbers(count);
  const auto* next = indices.data_ptr<std::int64_t>();
  for (const auto size : tensor.sizes().slice(0, static_cast<std::size_t>(tensor.sparse_dim())))
    for (auto& number : numbers) number = number * size + *next++;
  return numbers;
}

/// The reverse: a column of indices for each of these rows.
at::Tensor indices_of(const std::vector<std::int64_t>& rows, at::IntArrayRef sizes) {
  const auto count = rows.size();
  auto indices = at::empty({static_cast<std::int64_t>(sizes.size()), static_cast<std::int64_t>(count)}, at::kLong);
  auto* const out = indices.data_ptr<std::int64_t>();
  auto rest = rows;
  for (auto dimension = sizes.size(); dimension-- > 0;)
    for (std::size_t i = 0; i < count; ++i) {
      out[dimension * count + i] = rest[i] % sizes[dimension];
      rest[i] /= sizes[dimension];
    }
  return indices;
}

}  // namespace

sparse_rows::sparse_rows(const at::Tensor& tensor, const adasum::detail::communicator_ref& comm, const char* call,
                         bool compares)
    : tensor_(tensor) {
  std::size_t block = 0;  // of a rank: how many rows it has, how many dimensions choose a row, and the rows' numbers
  std::vector<std::int64_t> mine, of_ranks;
  std::vector<outgoing> out;
  std::vector<incoming> in;
  adasum::detail::collective_setup(call, comm, compares).run([&](auto& ranks) {
    const in_place_changes here(tensor);
    const auto coalesced = tensor.coalesce();
    mine_ = row_numbers(coalesced);
    values_ = coalesced.values().contiguous();

    adasum::detail::call_signature doing;
    doing.set(doing.activity, "reducing sparse rows");
    doing.set(doing.scalar, c10::toString(tensor.scalar_type()));
    doing.length = static_cast<std::uint64_t>(tensor.numel());
    doing.parts_hash = adasum::detail::hash(tensor.sizes());
    adasum::detail::agreement_memory memory(comm.size());
    const std::size_t none[] = {0};
    block = 2 + ranks.meet(doing, segments_view{none}, memory, mine_.size());
    mine = {static_cast<std::int64_t>(mine_.size()), tensor.sparse_dim()};
    mine.insert(mine.end(), mine_.begin(), mine_.end());
    mine.resize(block);
    of_ranks.resize(static_cast<std::size_t>(comm.size()) * block);
    all_.reserve(of_ranks.size());
    out.reserve(1);
    in.reserve(1);
    ranks.meet(doing, segments_view{none}, memory);
  });
  adasum::detail::allgather rounds(std::as_bytes(std::span(mine)), comm.rank(), comm.size(),
                                   std::as_writable_bytes(std::span(of_ranks)));
  for (; rounds.next(out, in); out.clear(), in.clear()) comm.exchange(out, in);
  for (auto own = of_ranks.begin(); own != of_ranks.end(); own += static_cast<std::ptrdiff_t>(block)) {
    if (own[0] == 0) continue;  // PyTorch forgets the dimensions of a gradient that has been zeroed
    if (std::exchange(row_dimension_, own[1]) != own[1] && !all_.empty())
      throw bad_input({call, ": the ranks' sparse tensors have different numbers of sparse dimensions"});
    all_.insert(all_.end(), own + 2, own + 2 + own[0]);
  }
  std::ranges::sort(all_);
  all_.erase(std::ranges::unique(all_).begin(), all_.end());
  width_ = product(tensor.sizes().slice(static_cast<std::size_t>(row_dimension_))) * (tensor.is_complex() ? 2 : 1);
}

void sparse_rows::spread() {
  const in_place_changes here(tensor_);
  const auto real = values_.is_complex() ? at::view_as_real(values_) : values_;
  numbers_ = at::zeros({static_cast<std::int64_t>(all_.size()), width_}, real.options());
  if (mine_.empty()) return;
  const auto places = at::empty({static_cast<std::int64_t>(mine_.size())}, at::kLong);
  std::ranges::transform(mine_, places.data_ptr<std::int64_t>(),
                         [&](auto row) { return std::ranges::lower_bound(all_, row) - all_.begin(); });
  numbers_.index_copy_(0, places.to(real.device()), real.reshape({places.numel(), width_}));
}

void sparse_rows::write_back() const {
  const in_place_changes here(tensor_);
  const auto dimension = static_cast<std::size_t>(row_dimension_);
  auto sizes = tensor_.sizes().slice(dimension).vec();
  sizes.insert(sizes.begin(), numbers_.size(0));
  const auto values =
      tensor_.is_complex() ? at::view_as_complex(numbers_.view({numbers_.size(0), width_ / 2, 2})) : numbers_;
  const auto rows = at::_sparse_coo_tensor_unsafe(
      indices_of(all_, tensor_.sizes().slice(0, dimension)).to(values.device()), values.view(sizes), tensor_.sizes());
  tensor_.copy_(rows._coalesced_(true));
}

}  // namespace adasum::python
