// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sparse_rows.hpp"

#include <algorithm>
#include <span>

#include <adasum/core/message.hpp>
#include <adasum/detail/collective/allgather.hpp>
#include <adasum/detail/collective/joint_set_up.hpp>
#include <adasum/exec/serial.hpp>

#include "real_numbers.hpp"

namespace adasum::python {
namespace {

std::int64_t product(at::IntArrayRef numbers) {
  std::int64_t result = 1;
  for (const auto number : numbers) result *= number;
  return result;
}

/// The sizes of the dimensions that choose a row, and those of a row.
at::IntArrayRef row_index_sizes(const at::Tensor& tensor) {
  return tensor.sizes().slice(0, static_cast<std::size_t>(tensor.sparse_dim()));
}
at::IntArrayRef row_sizes(const at::Tensor& tensor) {
  return tensor.sizes().slice(static_cast<std::size_t>(tensor.sparse_dim()));
}

/// Of each row of a coalesced tensor: its place among all rows that there may be.
std::vector<std::int64_t> row_numbers(const at::Tensor& tensor) {
  const auto indices = tensor.indices().contiguous();
  const auto count = static_cast<std::size_t>(indices.size(1));
  std::vector<std::int64_t> numbers(count);
  const auto* next = indices.data_ptr<std::int64_t>();
  for (const auto size : row_index_sizes(tensor))
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

sparse_rows::sparse_rows(const at::Tensor& tensor, const any_communicator& comm, const char* call, bool compares)
    : tensor_(tensor) {
  std::size_t block = 0;  // of a rank: how many rows it has, and their numbers
  std::vector<std::int64_t> of_ranks;
  const serial_space space;
  adasum::detail::joint_set_up(call, space, comm, compares).run([&](auto& ranks) {
    const in_place_changes here(tensor);
    const auto coalesced = tensor.coalesce();
    mine_ = row_numbers(coalesced);
    const auto values = coalesced.values().contiguous();
    const auto real = values.is_complex() ? at::view_as_real(values) : values;
    width_ = static_cast<std::size_t>(product(real.sizes().slice(1)));
    values_ = real.reshape({values.size(0), static_cast<std::int64_t>(width_)});

    adasum::detail::call_signature doing;
    doing.set(doing.activity, "reducing sparse rows");
    doing.set(doing.scalar, c10::toString(tensor.scalar_type()));
    doing.length = static_cast<std::uint64_t>(tensor.numel());
    doing.parts_hash = adasum::detail::hash(tensor.sizes(), static_cast<std::uint64_t>(tensor.sparse_dim()));
    adasum::detail::agreement_memory memory(comm.size());
    const std::size_t none[] = {0};
    block = 1 + ranks.meet(doing, segments_view{none}, memory, mine_.size());
    of_ranks.resize(static_cast<std::size_t>(comm.size()) * block);
    all_.reserve(of_ranks.size());
    ranks.meet(doing, segments_view{none}, memory);
  });
  exchange(comm, of_ranks, block);
  for (std::size_t begin = 0; begin < of_ranks.size(); begin += block)
    all_.insert(all_.end(), of_ranks.begin() + static_cast<std::ptrdiff_t>(begin + 1),
                of_ranks.begin() + static_cast<std::ptrdiff_t>(begin + 1) + of_ranks[begin]);
  std::ranges::sort(all_);
  all_.erase(std::ranges::unique(all_).begin(), all_.end());
}

void sparse_rows::exchange(const any_communicator& comm, std::vector<std::int64_t>& of_ranks,
                           std::size_t block) const {
  std::vector<std::int64_t> own(block);
  own[0] = static_cast<std::int64_t>(mine_.size());
  std::ranges::copy(mine_, own.begin() + 1);
  adasum::detail::allgather rounds(std::as_bytes(std::span(own)), comm.rank(), comm.size(),
                                   std::as_writable_bytes(std::span(of_ranks)));
  std::vector<outgoing> out;
  std::vector<incoming> in;
  while (rounds.next(out, in)) {
    comm.exchange(serial_space{}, out, in);
    out.clear();
    in.clear();
  }
}

void sparse_rows::spread() {
  const in_place_changes here(tensor_);
  numbers_ = at::zeros({static_cast<std::int64_t>(all_.size()), static_cast<std::int64_t>(width_)}, values_.options());
  auto places = at::empty({static_cast<std::int64_t>(mine_.size())}, at::kLong);
  std::ranges::transform(mine_, places.data_ptr<std::int64_t>(),
                         [&](auto row) { return std::ranges::lower_bound(all_, row) - all_.begin(); });
  numbers_.index_copy_(0, places, values_);
}

void sparse_rows::write_back() const {
  const in_place_changes here(tensor_);
  auto sizes = row_sizes(tensor_).vec();
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(all_.size()));
  auto values = numbers_;
  if (tensor_.is_complex())
    values = at::view_as_complex(numbers_.view({numbers_.size(0), static_cast<std::int64_t>(width_ / 2), 2}));
  const auto rows = at::_sparse_coo_tensor_unsafe(indices_of(all_, row_index_sizes(tensor_)), values.view(sizes),
                                                  tensor_.sizes());
  tensor_.copy_(rows._coalesced_(true));
}

}  // namespace adasum::python
