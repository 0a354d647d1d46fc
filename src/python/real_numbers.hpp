// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

namespace adasum::python {

/// While it lives, tensors are changed in place without autograd, those of inference mode as well.
class in_place_changes {
 public:
  explicit in_place_changes(const at::Tensor& tensor) : mode_(tensor.is_inference()) {}

 private:
  c10::InferenceMode mode_;
  c10::AutoGradMode gradients_{false};
};

/// A tensor's numbers as real ones in the order of its indices, whatever its strides: its own memory where they lie there like
/// that, and otherwise a copy, which write_back() copies back.
class real_numbers {
 public:
  explicit real_numbers(const at::Tensor& tensor) : tensor_(tensor) {
    const in_place_changes here(tensor);
    in_a_row_ = tensor.resolve_conj().resolve_neg().contiguous();
    real_ = in_a_row_.is_complex() ? at::view_as_real(in_a_row_) : in_a_row_;
  }

  const at::Tensor& get() const { return real_; }
  void write_back() const {
    const in_place_changes here(tensor_);
    if (!in_a_row_.is_same(tensor_)) tensor_.copy_(in_a_row_);
  }

 private:
  at::Tensor tensor_, in_a_row_, real_;
};

}  // namespace adasum::python
