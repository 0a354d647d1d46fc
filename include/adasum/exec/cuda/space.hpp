// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include "../../core/concepts.hpp"
#include "../../core/gram.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "device.hpp"
#include "kernel_arguments.hpp"
#include "memory.hpp"
#include "stream_kernels.hpp"

namespace adasum {

/// The execution space of one CUDA stream.
///
///     adasum::cuda_space exec{stream};
///     adasum::adasum_pair(exec, a, b, out);   // thrust::device_vector<float>, or std::span over memory of the device
///     adasum::enqueue_adasum_pair(exec, a, b, out);  // returns at once, as a kernel launch does
///
/// adasum_pair, combine and the others return when the result is there; the host reads inner products between measure
/// and mix. Calls whose name begins with enqueue_ compute weights on the device: the host waits for nothing, and from
/// the second call with the same segments on, nothing is allocated. So they can be recorded in a CUDA graph, which must
/// not outlive the space. Their rules run on the device: exec/cuda/weigh.hpp.
///
/// One kernel for each of measure and mix, whatever the number of segments; the order of additions is fixed by the
/// window alone, so results have the same bits in every run, and on devices of one architecture. For float, double,
/// __half, __nv_bfloat16 and other types with their bits. The stream must live longer than the space and the memory
/// that it allocates. Copies are handles to the same workspace: one host thread at a time, as with a cuBLAS handle.
///
/// Products are added in double, which suits devices that compute double at half the rate of float (the data centre
/// ones).
class cuda_space {
 public:
  static constexpr std::string_view name = "cuda";

  /// The current device's default stream.
  cuda_space() : cuda_space(nullptr) {}
  /// @param device  the one that the stream belongs to
  explicit cuda_space(cudaStream_t stream, int device = detail::cuda::current_device()) : kernels_(stream, device) {}

  /// The stream, which is the caller's.
  cudaStream_t stream() const { return kernels_.stream(); }
  /// The number of the device.
  int device() const { return kernels_.device(); }
  /// Whether both work on one stream.
  friend bool operator==(const cuda_space& a, const cuda_space& b) {
    return a.stream() == b.stream() && a.device() == b.device();
  }

  /// Uninitialised memory of the device, which message layers can share; waits for the device. @throws cuda_error
  template <scalar T>
  detail::cuda::shareable_buffer<T> allocate(std::size_t count) const {
    const detail::cuda::device_scope here(device());
    return detail::cuda::shareable_buffer<T>(count);
  }
  /// The same in the order of the stream, which waits for nothing. @throws cuda_error
  template <scalar T>
  detail::cuda::buffer<T> allocate_in_order(std::size_t count) const {
    return {count, stream(), device()};
  }

  /// Returns when gram, an array of the host, is there.
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    const auto entries = window.segments.size() * packed_size(vectors.size());
    if (window.range.empty()) return std::fill_n(gram, entries, 0.0), void();
    const detail::cuda::device_scope here(device());
    const double* const measured = kernels_.measure<T>(window, vectors);
    double* const scratch = kernels_.host_scratch(entries);
    download(measured, scratch, entries * sizeof(double));
    fence();
    std::copy_n(scratch, entries, gram);
  }

  /// `weights`, an array of the host, is read before this returns; the kernel is only enqueued.
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    if (window.range.empty()) return;
    const auto count = window.segments.size() * vectors.size();
    double* const scratch = kernels_.scratch_for_weights(count);
    write(std::span(weights, count), scratch);
    kernels_.mix<T>(window, vectors, scratch, out);
  }

  /// Enqueued.
  template <scalar T>
  void copy(const T* from, T* to, std::size_t count) const {
    transfer(from, to, count * sizeof(T));
  }
  /// Between float or double and any other type, rounded to nearest even. Enqueued.
  template <scalar From, scalar To>
    requires(!std::same_as<From, To> && (sizeof(From) >= sizeof(float) || sizeof(To) >= sizeof(float)))
  void copy(const From* from, To* to, std::size_t count) const {
    kernels_.convert(from, to, count);
  }

  /// Blocks until the stream has done all that was enqueued.
  void fence() const {
    const detail::cuda::device_scope here(device());
    detail::cuda::check("cudaStreamSynchronize", cudaStreamSynchronize(stream()));
  }

  // ── stream_ordered_space ──

  /// measure → weigh → mix under a rule along the tree, enqueued: the host waits for nothing. `rule` is copied to the
  /// device, where its operator() is called: mark it ADASUM_HOST_DEVICE. What weighing on the device means where
  /// gradients cancel or squares leave the range of double: exec/cuda/weigh.hpp.
  /// @throws bad_input  new segments, or more memory needed, while the stream is being recorded in a graph
  template <scalar T, tree_rule Rule>
    requires std::is_trivially_copyable_v<Rule>
  void enqueue_combine(const Rule& rule, const slice& window, std::span<const T* const> vectors, T* out) const {
    if (window.range.empty()) return;
    if (vectors.size() == 2 && kernels_.combine_two<T>(rule, window, vectors, out)) return;
    const double* const gram = kernels_.measure<T>(window, vectors);
    const double* const weights = kernels_.weigh(rule, gram, window.segments.size(), vectors.size());
    kernels_.mix<T>(window, vectors, weights, out);
  }

  // The steps of enqueue_combine, for schedules that exchange inner products between them: device pointers throughout.

  /// gram[k·packed_size(n) + p], in the workspace, until the next call.
  template <scalar T>
  double* measure_on_device(const slice& window, std::span<const T* const> vectors) const {
    return kernels_.measure<T>(window, vectors);
  }

  /// weights[k·n + i], in the workspace, until the next call.
  /// @param leaves  n numbers on the device: how many gradients each vector combines; null: one
  template <tree_rule Rule>
    requires std::is_trivially_copyable_v<Rule>
  double* weigh_on_device(const Rule& rule, const double* gram, std::size_t segments, std::size_t n,
                          const double* leaves = nullptr) const {
    return kernels_.weigh(rule, gram, segments, n, leaves);
  }

  template <scalar T>
  void mix_on_device(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    kernels_.mix<T>(window, vectors, weights, out);
  }

  /// values[i] = Σₖ pieces[k·count + i], in the order of k.
  void add_pieces(const double* pieces, std::size_t number, std::size_t count, double* values) const {
    kernels_.add_pieces(pieces, number, count, values);
  }

  /// Enqueues to[i] = values[i] from memory of the host, which is not needed any more when this returns.
  void write(std::span<const double> values, double* to) const {
    const detail::cuda::device_scope here(device());
    constexpr std::size_t few =
        8 * detail::cuda::argument_values::most;  // above, one copy is faster than so many launches
    if (values.size() <= few) return detail::cuda::write_by_arguments(values, to, stream());
    transfer(values.data(), to, values.size_bytes());
    fence();
  }

  // ── device_space ──

  /// Enqueues a copy between any two places of the device's or the host's. From or to ordinary (not pinned) memory of
  /// the host, it may block until the copy is done.
  void transfer(const void* from, void* to, std::size_t bytes) const {
    if (bytes == 0) return;
    const detail::cuda::device_scope here(device());
    detail::cuda::check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream()));
  }

  void upload(const void* from, void* to, std::size_t bytes) const { transfer(from, to, bytes); }
  void download(const void* from, void* to, std::size_t bytes) const { transfer(from, to, bytes); }

  using host_memory = detail::cuda::pinned_buffer<std::byte>;
  using event = detail::cuda::event;
  /// A moment behind all that has been enqueued.
  void record(event& moment) const {
    const detail::cuda::device_scope here(device());
    moment.record(stream());
  }

  /// Whether kernels can read and write at this address.
  bool can_reach(const void* address) const {
    cudaPointerAttributes found{};
    if (cudaPointerGetAttributes(&found, address) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    if (found.type == cudaMemoryTypeUnregistered)
      return detail::cuda::attribute(cudaDevAttrPageableMemoryAccess, device()) != 0;
    if (found.type != cudaMemoryTypeDevice || found.device == device()) return true;
    int reachable = 0;  // whether that is enabled too cannot be asked
    detail::cuda::check("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&reachable, device(), found.device));
    return reachable != 0;
  }

  /// @cond internal
  friend std::string_view rounding_of(detail::own_type, const cuda_space&) { return "tiles of 16 KiB"; }
  /// @endcond

 private:
  detail::cuda::stream_kernels kernels_;
};

/// @cond internal
/// See core/concepts.hpp.
inline cuda_space for_recombining(const cuda_space& space) { return space; }
/// @endcond
static_assert(detail::recombines_in_double<cuda_space, float>);

}  // namespace adasum
