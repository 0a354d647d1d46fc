// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <adasum/core/error.hpp>
#include <adasum/core/parts.hpp>

#include "group_worker.hpp"
#include "held_tensor.hpp"
#include "reducer.hpp"

/// adasum.torch's part in C++: what runs beside the backward pass.
namespace adasum::python {
namespace {

namespace py = pybind11;
using wrapped_future = std::shared_ptr<torch::jit::PythonFutureWrapper>;

void destroy(group_worker* one) { delete one; }
void destroy(reducer* one) { reducer::destroy(one); }

/// Objects whose destruction waits for other ranks: without the GIL, and not where there is nobody to wait for.
template <class T, class... Arguments>
std::shared_ptr<T> make_waiting(Arguments&&... arguments) {
  const py::gil_scoped_release meanwhile;
  return {new T(std::forward<Arguments>(arguments)...), [](T* one) {
            if (one->is_abandoned()) return;
            if (!PyGILState_Check()) return destroy(one);
            const py::gil_scoped_release others_go_on;
            destroy(one);
          }};
}

std::shared_ptr<group_worker> make_worker(c10::intrusive_ptr<::c10d::ProcessGroup> group, double timeout,
                                          std::optional<c10::intrusive_ptr<::c10d::ProcessGroup>> for_devices) {
  return make_waiting<group_worker>(std::move(group), std::chrono::duration<double>(timeout),
                                    std::move(for_devices).value_or(c10::intrusive_ptr<::c10d::ProcessGroup>()));
}

std::shared_ptr<reducer> make_reducer(std::shared_ptr<group_worker> worker, const std::string& rule,
                                      const std::string& options, std::optional<std::pair<int, int>> replica_and_part,
                                      const std::string& problem, const std::string& choice,
                                      const processor_names& processors) {
  std::optional<shard> part;
  if (replica_and_part) part = {.replica = replica_and_part->first, .index = replica_and_part->second};
  return make_waiting<reducer>(std::move(worker), rule, options, std::move(part), problem, choice, processors);
}

wrapped_future wrapped(reducer::future future) {
  return std::make_shared<torch::jit::PythonFutureWrapper>(std::move(future));
}

/// In the elements of the bucket's buffer, which holds complex numbers as pairs of real ones.
std::vector<std::size_t> lengths_of(const ::c10d::GradBucket& bucket) {
  std::vector<std::size_t> lengths;
  for (const auto& parameter : bucket.getParameters()) {
    const bool is_pairs = parameter.is_complex() && !bucket.getBuffer().is_complex();
    lengths.push_back(static_cast<std::size_t>(parameter.numel()) * (is_pairs ? 2 : 1));
  }
  return lengths;
}

/// With the GIL.
wrapped_future begin_bucket(reducer& self, const ::c10d::GradBucket& bucket) {
  const auto& buffer = bucket.getBuffer();
  return wrapped(buffer.is_sparse() ? self.reduce_rows(buffer, held(buffer))
                                    : self.reduce(buffer, lengths_of(bucket), held(buffer)));
}

}  // namespace

PYBIND11_MODULE(_torch, module) {
  // The classes of adasum's own errors, which Python defines, so that they are the same with and without PyTorch.
  static const auto& errors = *new py::object(py::module_::import("adasum._errors"));  // it outlives the interpreter
  py::register_exception_translator([](std::exception_ptr thrown) {
    const auto set = [](const char* name, const std::exception& error) {
      // It may repeat what the program has said, in whatever encoding.
      const auto text = py::bytes(error.what()).attr("decode")("utf-8", "backslashreplace");
      PyErr_SetObject(errors.attr(name).ptr(), text.ptr());
    };
    try {
      std::rethrow_exception(std::move(thrown));
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
    } catch (const shared_memory_error& error) {
      set("SharedMemoryError", error);
    } catch (const adasum::error& error) {
      set("Error", error);
    }
  });

  module.def("require_settings", &require_settings, py::arg("rule"), py::arg("options"), py::arg("kernels"));
  module.def("abandon_all", &group_worker::abandon_all, py::call_guard<py::gil_scoped_release>());
  py::class_<group_worker, std::shared_ptr<group_worker>>(module, "Worker")
      .def(py::init(&make_worker), py::arg("group"), py::arg("timeout"), py::arg("for_devices"));
  py::class_<reducer, std::shared_ptr<reducer>>(module, "Reducer")
      .def(py::init(&make_reducer), py::arg("worker"), py::arg("rule"), py::arg("options"), py::arg("shard"),
           py::arg("problem"), py::arg("kernels"), py::arg("processors"))
      .def(
          "reduce",
          [](reducer& self, const at::Tensor& tensor, std::optional<std::vector<std::size_t>> lengths,
             const std::string& problem) {
            return wrapped(self.reduce(tensor, std::move(lengths), held(tensor), problem));
          },
          py::arg("tensor"), py::arg("lengths"), py::arg("problem") = "")
      .def("reduce_bucket", &begin_bucket, py::arg("bucket"))
      .def(
          "refuse", [](reducer& self, const std::string& problem) { return wrapped(self.refuse(problem)); },
          py::arg("problem"))
      .def("lengths", [](reducer&, const ::c10d::GradBucket& bucket) { return lengths_of(bucket); })
      .def_property_readonly("is_whole_model", &reducer::is_whole_model)
      .def("begin_step", &reducer::begin_step)
      .def("reports", &reducer::reports);
}

}  // namespace adasum::python
