// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What PyTorch needs of a device (PrivateUse1): memory, streams, events, and operators, all of which the CPU's compute, on
// copies.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <cstring>
#include <string>

#include "backend.hpp"
#include "memory.hpp"

namespace emulated {
namespace {

constexpr auto kind = c10::DeviceType::PrivateUse1;

struct allocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* const at = device::only().allocate(bytes, device::current());
    return {at, at, &free, c10::Device(kind, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    std::memcpy(device::only().host_side(to), device::only().host_side(from), count);
  }
  static void free(void* at) { device::only().free(at); }
};
allocator memory;
REGISTER_ALLOCATOR(kind, &memory);

struct guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kind;
  explicit guard(c10::DeviceType = kind) {}

  static c10::Stream stream(stream_id id) { return c10::Stream(c10::Stream::UNSAFE, c10::Device(kind, 0), id); }

  c10::DeviceType type() const override { return kind; }
  c10::Device exchangeDevice(c10::Device) const override { return {kind, 0}; }
  c10::Device getDevice() const override { return {kind, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const override { return stream(device::current()); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(device::only().new_stream()); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(device::only().new_stream()); }
  c10::Stream exchangeStream(c10::Stream next) const override {
    return stream(std::exchange(device::current(), next.id()));
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream& one) const override { device::only().wait(device::only().now(one.id())); }

  void synchronizeDevice(c10::DeviceIndex) const override { device::only().wait_for_all(); }

  void record(void** event, const c10::Stream& one, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new clock;
    *static_cast<clock*>(*event) = device::only().now(one.id());
  }
  void block(void* event, const c10::Stream& one) const override {
    if (event != nullptr) device::only().wait(one.id(), *static_cast<clock*>(event));
  }
  bool queryEvent(void* event) const override { return synchronizeEvent(event), true; }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) device::only().wait(*static_cast<clock*>(event));
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<clock*>(event); }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& one) const override {
    device::only().record(data.get(), one.id());
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, guard);

struct hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    auto larger = memory.allocate(bytes);
    if (storage.nbytes()) memory.copy_data(larger.get(), storage.data(), std::min(bytes, storage.nbytes()));
    storage.set_data_ptr(std::move(larger));
    storage.set_nbytes(bytes);
  }
};

// ── operators ──

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}
at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

/// The same elements, where the CPU's operators find them.
at::Tensor on_host(const at::Tensor& tensor) {
  if (!tensor.is_privateuseone()) return tensor;
  void* const at = tensor.numel() ? device::only().host_side(tensor.data_ptr()) : nullptr;
  const auto found = at::from_blob(at, tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
  found._set_conj(tensor.is_conj());
  found._set_neg(tensor.is_neg());
  return found;
}
void note_use(const std::string& name, const at::Tensor& tensor, bool writes) {
  if (tensor.is_privateuseone() && tensor.has_storage() && tensor.numel())
    device::only().use(name, tensor.storage().data(), writes);
}

thread_local bool falls_back = false;  // an operator, which has been noted, is carried out on copies

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (!falls_back) {
    device::only().begin("copy");
    note_use("copy", from, false);
    note_use("copy", to, true);
  }
  on_host(to).copy_(on_host(from));
  if (!falls_back && !non_blocking && !(from.is_privateuseone() && to.is_privateuseone()))
    device::only().wait(device::only().now(device::current()));
  return to;
}
at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  at::native::resize_output(to, from.sizes());
  return copy_from(from, to, false);
}
at::Scalar local_scalar(const at::Tensor& self) {
  note_use("item", self, false);
  device::only().wait(device::only().now(device::current()));
  return on_host(self).item();
}
const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size, std::optional<at::MemoryFormat>) {
  auto* const impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  const auto bytes = static_cast<std::size_t>(self.numel() + self.storage_offset()) * self.itemsize();
  if (self.storage().nbytes() < bytes) hooks().resizePrivateUse1Bytes(self.storage(), bytes);
  return self;
}
at::Tensor& set_storage(at::Tensor& self, at::Storage source, std::int64_t offset, c10::IntArrayRef size,
                        c10::IntArrayRef stride) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return self;
}

/// All others.
void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& name = op.operator_name().name;
  const auto& arguments = op.schema().arguments();
  device::only().begin(name);
  const auto given = torch::jit::last(*stack, arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* const alias = arguments[i].alias_info();
    const bool writes = alias != nullptr && alias->isWrite();
    if (given[i].isTensor() && given[i].toTensor().defined()) note_use(name, given[i].toTensor(), writes);
    if (given[i].isTensorList())
      for (const auto& one : given[i].toTensorVector()) note_use(name, one, writes);
  }
  falls_back = true;
  try {
    at::native::cpu_fallback(op, stack);
  } catch (...) {
    falls_back = false;
    throw;
  }
  falls_back = false;
}

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>());
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("view_as_real", &at::native::view_as_real);
  library.impl("view_as_complex", &at::native::view_as_complex);
  library.impl("unfold", &at::native::unfold);
  library.impl("_local_scalar_dense", &local_scalar);
  library.impl("resize_", &resize);
  library.impl("set_.source_Storage_storage_offset", &set_storage);
}
// Which copies of conjugates and negatives would call again.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) { library.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, library) { library.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  at::RegisterPrivateUse1HooksInterface(new hooks);
  module.def("complaints", [] { return device::only().complaints(); });
  module.def("operators", [] { return device::only().operators(); });
  module.def("set_limit", [](std::size_t bytes) { device::only().set_limit(bytes); });
  module.def("let_fail", [](const std::string& name) { device::only().let_fail(name); });
  module.def("make_backend", [](c10::intrusive_ptr<c10d::Backend> of_host) -> c10::intrusive_ptr<c10d::Backend> {
    return c10::make_intrusive<backend>(std::move(of_host));
  });
}

}  // namespace emulated
