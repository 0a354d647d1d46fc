// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../serial.hpp"
#include "elements.hpp"
#include "measure.hpp"
#include "mix.hpp"
#include "workspace.hpp"

namespace adasum {

/// The execution space of a Kokkos execution space.
///
///     adasum::kokkos_space exec{Kokkos::DefaultExecutionSpace{}};
///     adasum::adasum_pair(exec, a, b, out);  // Kokkos::View<float*>
///
/// Every kernel is launched on the instance that was given, and only that instance is fenced, and only where the host
/// reads. One kernel for each of measure and mix, whatever the number of segments. Fulfils the contract of the concept
/// execution_space for every scalar; with a device, also that of device_space, so that communicators know what to do
/// with its memory. Copies share memory that the kernels for devices work in: one host thread at a time there. Kokkos
/// must be initialised.
/// @tparam OnHost  whether to use the kernels for the host; `false` runs those for devices anywhere, to test them
template <class ExecutionSpace = Kokkos::DefaultExecutionSpace,
          bool OnHost = detail::kokkos::works_on_host<ExecutionSpace>>
class kokkos_space {
 public:
  static constexpr std::string_view name = "kokkos";
  /// Where its gradients lie.
  using memory_space = typename ExecutionSpace::memory_space;

  /// On the default instance.
  kokkos_space() = default;
  /// On this instance.
  explicit kokkos_space(ExecutionSpace instance) : instance_(std::move(instance)) {}

  /// The instance on which kernels are launched.
  const ExecutionSpace& instance() const { return instance_; }
  /// Whether they work alike: on the host, on any instance; on a device, as copies of one space.
  friend bool operator==(const kokkos_space& a, const kokkos_space& b) {
    return a.serial_ == b.serial_ && a.workspace_ == b.workspace_;  // not every Kokkos can compare instances
  }

  /// Uninitialised memory of the execution space, owned by the view that is returned.
  template <scalar T>
  Kokkos::View<T*, memory_space> allocate(std::size_t count) const {
    return Kokkos::View<T*, memory_space>(Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string("adasum")),
                                          count);
  }

  /// Returns when gram is there.
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    if constexpr (OnHost)
      detail::kokkos::measure_on_host(instance_, window, vectors.size(), gram, [&](const slice& tile, double* sums) {
        serial_.measure<T>(tile, vectors, sums, serial_space::bytes_of<T>(window, vectors.size()));
      });
    else
      detail::kokkos::measure_by_teams<T>(instance_, *workspace_, window, vectors, gram);
  }
  /// Every product and sum in double. Kernels for devices do nothing else.
  template <scalar T>
  void measure_in_double(const slice& window, std::span<const T* const> vectors, double* gram) const {
    if constexpr (OnHost)
      detail::kokkos::measure_on_host(instance_, window, vectors.size(), gram, [&](const slice& tile, double* sums) {
        serial_.measure_in_double<T>(tile, vectors, sums);
      });
    else
      measure(window, vectors, gram);
  }

  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    if constexpr (OnHost)
      detail::kokkos::mix_on_host(
          instance_, window, vectors.size(), weights,
          [=, serial = serial_, bytes = serial_space::bytes_of<T>(window, vectors.size())](
              const slice& tile, const double* of_tile) { serial.mix<T>(tile, vectors, of_tile, out, bytes); });
    else
      detail::kokkos::mix_by_teams<T>(instance_, *workspace_, window, vectors, weights, out);
  }
  /// Every product and sum in double. Kernels for devices do nothing else.
  template <scalar T>
  void mix_in_double(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    if constexpr (OnHost)
      detail::kokkos::mix_on_host(instance_, window, vectors.size(), weights,
                                  [=, serial = serial_](const slice& tile, const double* of_tile) {
                                    serial.mix_in_double(tile, vectors, of_tile, out);
                                  });
    else
      mix(window, vectors, weights, out);
  }

  /// Of one element type, or between float and a 16-bit type, rounded to nearest even; on devices also between double
  /// and any other.
  template <scalar From, scalar To>
    requires(!OnHost) ||
            requires(const serial_space& serial, const From* from, To* to) { serial.copy(from, to, std::size_t{}); }
  void copy(const From* from, To* to, std::size_t count) const {
    if constexpr (OnHost)
      detail::kokkos::copy_on_host(instance_, serial_, from, to, count);
    else
      detail::kokkos::copy_on_device(instance_, from, to, count);
  }

  void fence() const { instance_.fence(); }

  /// @cond internal
  /// See core/concepts.hpp. The host's kernels have ended when they return.
  friend auto for_recombining(const kokkos_space& space) {
    if constexpr (OnHost)
      return detail::serial_double_space(space.serial_);
    else
      return space;
  }
  friend std::string_view rounding_of(detail::own_type, const kokkos_space& space) {
    return OnHost ? to_string(space.serial_.instructions()) : "teams";
  }
  friend void must_not_be_kept(detail::own_type, const kokkos_space&) {}  // Kokkos may be finalised first
  /// @endcond

  // ── device_space, where the host does not work on the memory ──

  void upload(const void* from, void* to, std::size_t bytes) const
    requires(!OnHost)
  {
    Kokkos::deep_copy(instance_, bytes_at<memory_space>(to, bytes), bytes_at<Kokkos::HostSpace>(from, bytes));
  }
  void download(const void* from, void* to, std::size_t bytes) const
    requires(!OnHost)
  {
    Kokkos::deep_copy(instance_, bytes_at<Kokkos::HostSpace>(to, bytes), bytes_at<memory_space>(from, bytes));
  }
  void transfer(const void* from, void* to, std::size_t bytes) const
    requires(!OnHost)
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
    requires(!OnHost)
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
  serial_space serial_;                                                    // the host's kernels
  std::shared_ptr<detail::kokkos::workspace<ExecutionSpace>> workspace_ =  // the device's; copies share it
      OnHost ? nullptr : std::make_shared<detail::kokkos::workspace<ExecutionSpace>>();
};

}  // namespace adasum
