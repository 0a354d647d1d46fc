// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <torch/csrc/utils/pybind.h>

#include <string>
#include <utility>
#include <vector>

namespace adasum::python {

/// A tensor as Python sees it, for a future: Python's futures, and DistributedDataParallel, which takes what they are completed
/// with, want Python's objects. PyTorch's own class for these needs functions that its library does not export.
class held_tensor final : public c10::ivalue::PyObjectHolder {
  template <class>
  struct second_argument;
  template <class Result, class Class, class First, class Second>
  struct second_argument<Result (Class::*)(First, Second)> {
    using type = Second;
  };
  /// An optional number, which is c10::optional in old versions.
  using length_of_list = second_argument<decltype(&c10::ivalue::PyObjectHolder::toIValue)>::type;

 public:
  /// With the GIL.
  explicit held_tensor(at::Tensor tensor) : tensor_(std::move(tensor)), object_(pybind11::cast(tensor_)) {}
  held_tensor(const held_tensor&) = delete;
  held_tensor& operator=(const held_tensor&) = delete;
  ~held_tensor() override {
    if (!Py_IsInitialized()) {  // a future outlives the interpreter
      object_.release();
      return;
    }
    const pybind11::gil_scoped_acquire gil;
    object_ = {};
  }

  PyObject* getPyObject() override { return object_.ptr(); }
  c10::InferredType tryToInferType() override { return c10::InferredType(c10::TensorType::get()); }
  c10::IValue toIValue(const c10::TypePtr& /*type*/, length_of_list /*length*/) override { return tensor_; }
  std::string toStr() override { return "Tensor"; }
  std::vector<at::Tensor> extractTensors() override { return {tensor_}; }

 private:
  at::Tensor tensor_;
  pybind11::object object_;
};

/// With the GIL.
inline c10::IValue held(const at::Tensor& tensor) {
  return c10::IValue(c10::intrusive_ptr<c10::ivalue::PyObjectHolder>(c10::make_intrusive<held_tensor>(tensor)));
}

}  // namespace adasum::python
