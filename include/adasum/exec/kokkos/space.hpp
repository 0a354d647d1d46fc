// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "host.hpp"
#include "teams.hpp"

namespace adasum {

namespace kokkos {

template <class ExecutionSpace>
inline constexpr bool works_on_host =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename ExecutionSpace::memory_space>::accessible &&
    Kokkos::SpaceAccessibility<ExecutionSpace, Kokkos::HostSpace>::accessible;

template <class ExecutionSpace>
using kernels_for =
    std::conditional_t<works_on_host<ExecutionSpace>, host_kernels<ExecutionSpace>, team_kernels<ExecutionSpace>>;

}  // namespace kokkos

/// The execution space of a Kokkos execution space.
///
///     adasum::kokkos_space exec{Kokkos::DefaultExecutionSpace{}};
///     adasum::adasum_pair(exec, a, b, out);  // Kokkos::View<float*>
///
/// Every kernel is launched on the instance that was given, and only that instance is fenced, only where the host
/// reads. One kernel for each of measure and mix whatever the number of segments (kernels: host.hpp, teams.hpp). Holds
/// the contract of the concept execution_space for every scalar; with a device, also that of device_space, so that
/// communicators know what to do with its memory. Kokkos must be initialised.
template <class ExecutionSpace = Kokkos::DefaultExecutionSpace, class Kernels = kokkos::kernels_for<ExecutionSpace>>
class kokkos_space {
 public:
  static constexpr std::string_view name = "kokkos";
  using memory_space = typename ExecutionSpace::memory_space;

  kokkos_space() = default;
  explicit kokkos_space(ExecutionSpace instance) : instance_(std::move(instance)) {}

  const ExecutionSpace& instance() const { return instance_; }
  /// Ranks whose spaces differ in this do not round alike, so they could not end bitwise identical.
  std::string_view arithmetic() const { return kernels_.arithmetic(); }

  /// Uninitialised memory of the execution space, owned by the view that is returned.
  template <scalar T>
  Kokkos::View<T*, memory_space> allocate(std::size_t count) const {
    return Kokkos::View<T*, memory_space>(Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string("adasum")),
                                          count);
  }

  /// Returns when gram is there.
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    kernels_.template measure<T>(instance_, window, vectors, gram);
  }

  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    kernels_.template mix<T>(instance_, window, vectors, weights, out);
  }

  template <scalar T>
  void copy(const T* from, T* to, std::size_t count) const {
    if (count > 0) kernels_.copy(instance_, from, to, count);
  }
  /// Between float and a 16-bit type, rounded to nearest even.
  template <scalar From, scalar To>
    requires(!std::same_as<From, To>) &&
            requires(const serial_space& serial, const From* from, To* to) { serial.copy(from, to, std::size_t{}); }
  void copy(const From* from, To* to, std::size_t count) const {
    if (count > 0) kernels_.copy(instance_, from, to, count);
  }

  void fence() const { instance_.fence(); }

  // ── device_space, where the host does not work on the memory ──

  void upload(const void* from, void* to, std::size_t bytes) const
    requires(!Kernels::on_host)
  {
    Kokkos::deep_copy(instance_, bytes_at<memory_space>(to, bytes), bytes_at<Kokkos::HostSpace>(from, bytes));
  }
  void download(const void* from, void* to, std::size_t bytes) const
    requires(!Kernels::on_host)
  {
    Kokkos::deep_copy(instance_, bytes_at<Kokkos::HostSpace>(to, bytes), bytes_at<memory_space>(from, bytes));
  }
  void transfer(const void* from, void* to, std::size_t bytes) const
    requires(!Kernels::on_host)
  {
    Kokkos::deep_copy(instance_, bytes_at<memory_space>(to, bytes), bytes_at<memory_space>(from, bytes));
  }

  /// Ordinary memory: Kokkos copies from and to it before it returns.
  class host_memory {
   public:
    explicit host_memory(std::size_t bytes) : bytes_(std::make_unique_for_overwrite<std::byte[]>(bytes)) {}
    std::byte* data() const { return bytes_.get(); }

   private:
    std::unique_ptr<std::byte[]> bytes_;
  };
  /// Kokkos has no events: to record one waits for the instance.
  struct event {
    void wait() const {}
  };
  void record(event&) const
    requires(!Kernels::on_host)
  {
    fence();
  }

 private:
  template <class Memory, class Void>
  static auto bytes_at(Void* address, std::size_t bytes) {
    using byte = std::conditional_t<std::is_const_v<Void>, const unsigned char, unsigned char>;
    return Kokkos::View<byte*, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(static_cast<byte*>(address), bytes);
  }

  ExecutionSpace instance_;
  Kernels kernels_;
};

}  // namespace adasum
