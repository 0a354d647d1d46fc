// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <adasum/detail/references/communicator_ref.hpp>

namespace adasum::python {

/// The rows of a sparse gradient that any rank has, as one dense gradient. Rows that this rank lacks are zero.
class sparse_rows {
 public:
  /// Collective: all ranks learn if one fails.
  /// @param compares  whether ranks that disagree find out in what
  /// @throws communication_error, agreement_error  the tensors have different shapes or types, among others
  sparse_rows(const at::Tensor& tensor, const adasum::detail::communicator_ref& comm, const char* call, bool compares);

  /// Makes the dense gradient; not collective.
  void spread();
  /// Real numbers, row after row; after spread().
  const at::Tensor& numbers() const { return numbers_; }
  /// Of each row: that length.
  std::vector<std::size_t> lengths() const { return std::vector(all_.size(), static_cast<std::size_t>(width_)); }
  /// Makes the tensor consist of these rows.
  void write_back() const;

 private:
  at::Tensor tensor_;
  at::Tensor values_;               // of this rank's rows
  std::vector<std::int64_t> mine_;  // their numbers, ascending
  std::vector<std::int64_t> all_;   // those of all ranks' rows, ascending
  std::int64_t row_dimension_ = 1;  // the first dimension that a row has; those before it choose the row
  std::int64_t width_ = 1;          // of a row, in real numbers
  at::Tensor numbers_;
};

}  // namespace adasum::python
