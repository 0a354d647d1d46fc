// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/jit/python/python_ivalue.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <adasum/core/error.hpp>

#include "reducer.hpp"

/// adasum.torch's part in C++: what runs beside the backward pass.
namespace adasum::python {
namespace {

namespace py = pybind11;
using wrapped_future = std::shared_ptr<torch::jit::PythonFutureWrapper>;

/// Which ends its thread, and waits for what that is doing, without the GIL.
std::shared_ptr<reducer> make(c10::intrusive_ptr<::c10d::ProcessGroup> group, const std::string& rule,
                              const std::string& options) {
  const py::gil_scoped_release meanwhile;
  return {new reducer(std::move(group), rule, options), [](reducer* one) {
            if (!PyGILState_Check()) return delete one;
            const py::gil_scoped_release others_go_on;
            delete one;
          }};
}

/// With the GIL. Python's futures hold Python's objects.
wrapped_future begin(reducer& self, const at::Tensor& tensor, std::vector<std::size_t> lengths) {
  auto result = c10::IValue(c10::ivalue::ConcretePyObjectHolder::create(py::cast(tensor)));
  return std::make_shared<torch::jit::PythonFutureWrapper>(self.reduce(tensor, std::move(lengths), std::move(result)));
}

std::vector<std::size_t> lengths_of(const ::c10d::GradBucket& bucket) {
  std::vector<std::size_t> lengths;
  for (const auto& parameter : bucket.getParameters()) lengths.push_back(static_cast<std::size_t>(parameter.numel()));
  return lengths;
}

}  // namespace

PYBIND11_MODULE(_torch, module) {
  // The classes of adasum's own errors, which Python defines, so that they are the same with and without PyTorch.
  static const auto& errors = *new py::object(py::module_::import("adasum._errors"));  // it outlives the interpreter
  py::register_exception_translator([](std::exception_ptr thrown) {
    const auto set = [](const char* name, const std::exception& error) {
      PyErr_SetString(errors.attr(name).ptr(), error.what());
    };
    try {
      std::rethrow_exception(thrown);
    } catch (const agreement_error& error) {
      set("AgreementError", error);
    } catch (const bad_input& error) {
      set("BadInput", error);
    } catch (const nonfinite_error& error) {
      set("NonfiniteError", error);
    } catch (const timeout_error& error) {
      set("TimeoutError", error);
    } catch (const communication_error& error) {
      set("CommunicationError", error);
    } catch (const adasum::error& error) {
      set("Error", error);
    }
  });

  py::class_<reducer, std::shared_ptr<reducer>>(module, "Reducer")
      .def(py::init(&make), py::arg("group"), py::arg("rule"), py::arg("options"))
      .def("reduce", &begin, py::arg("tensor"), py::arg("lengths"))
      .def("reduce_bucket",
           [](reducer& self, const ::c10d::GradBucket& bucket) {
             return begin(self, bucket.getBuffer(), lengths_of(bucket));
           })
      .def("lengths", [](reducer&, const ::c10d::GradBucket& bucket) { return lengths_of(bucket); })
      .def_property_readonly("is_whole_model", &reducer::is_whole_model)
      .def("begin_step", &reducer::begin_step)
      .def("reports", &reducer::reports);
}

}  // namespace adasum::python
