// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "../../core/concepts.hpp"
#include "../../core/gram.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../tiles.hpp"
#include "device.hpp"
#include "elements.hpp"
#include "kernel_arguments.hpp"
#include "measure.hpp"
#include "memory.hpp"
#include "mix.hpp"
#include "on_chip.hpp"
#include "weigh.hpp"
#include "workspace.hpp"

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
  explicit cuda_space(cudaStream_t stream, int device = detail::cuda::current_device())
      : stream_(stream), device_(device), workspace_(std::make_shared<detail::cuda::workspace>()) {}

  /// The stream, which is the caller's.
  cudaStream_t stream() const { return stream_; }
  /// The number of the device.
  int device() const { return device_; }
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
    const double* const measured = measure_on_device<T>(window, vectors);
    double* const scratch = workspace_->host_scratch(entries);
    download(measured, scratch, entries * sizeof(double));
    fence();
    std::copy_n(scratch, entries, gram);
  }

  /// `weights`, an array of the host, is read before this returns; the kernel is only enqueued.
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    if (window.range.empty()) return;
    const auto count = window.segments.size() * vectors.size();
    double* const scratch = scratch_in(workspace_->weights, count);
    write(std::span(weights, count), scratch);
    mix_on_device<T>(window, vectors, scratch, out);
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
    using namespace detail::cuda;
    if (count == 0) return;
    const device_scope here(device_);
    launch("convert", convert<format_of<From>, format_of<To>>, {blocks_for(count), threads_per_block}, stream_,
           stored(from), stored(to), count);
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
    if (vectors.size() == 2 && combine_two<T>(rule, window, vectors, out)) return;
    const double* const gram = measure_on_device<T>(window, vectors);
    const double* const weights = weigh_on_device(rule, gram, window.segments.size(), vectors.size());
    mix_on_device<T>(window, vectors, weights, out);
  }

  // The steps of enqueue_combine, for schedules that exchange inner products between them: device pointers throughout.

  /// gram[k·packed_size(n) + p], in the workspace, until the next call.
  template <scalar T>
  double* measure_on_device(const slice& window, std::span<const T* const> vectors) const {
    using namespace detail::cuda;
    const device_scope here(device_);
    const auto n = vectors.size(), entries = packed_size(n), segments = window.segments.size();
    const bool few = n <= most_in_registers;
    const auto& table = tiles<T>(window, few ? 1 : packs_per_thread);
    double* const partials = scratch_in(workspace_->partials, entries * table.count);
    double* const gram = scratch_in(workspace_->gram, entries * segments);
    const auto over_tiles = [&](auto kernel, const auto& list) {
      using namespace detail::cuda;  // again: nvcc does not look for it outside of a generic lambda
      launch("measure_tiles", kernel, {table.count, threads_per_block}, stream_,
             static_cast<const detail::tile*>(table.tiles.data()), table.count, list, static_cast<int>(n), partials);
    };
    if (table.count > 0) {
      if (n <= 2)
        over_tiles(measure_tiles<format_of<T>, 2>, listed<2>(vectors));
      else if (n <= 4)
        over_tiles(measure_tiles<format_of<T>, 4>, listed<4>(vectors));
      else if (few)
        over_tiles(measure_tiles<format_of<T>, most_in_registers>, listed<most_in_registers>(vectors));
      else
        over_tiles(measure_tiles_of_many<format_of<T>>, addresses<T>(vectors));
    }
    launch("add_tiles", add_tiles<>, {segments * entries, threads_per_block}, stream_,
           static_cast<const double*>(partials), table.count, static_cast<const std::size_t*>(table.first_tile.data()),
           entries, gram);
    return gram;
  }

  /// weights[k·n + i], in the workspace, until the next call.
  /// @param leaves  n numbers on the device: how many gradients each vector combines; null: one
  template <tree_rule Rule>
    requires std::is_trivially_copyable_v<Rule>
  double* weigh_on_device(const Rule& rule, const double* gram, std::size_t segments, std::size_t n,
                          const double* leaves = nullptr) const {
    using namespace detail::cuda;
    const device_scope here(device_);
    constexpr unsigned threads = 64;
    double* const weights = scratch_in(workspace_->weights, segments * n);
    double* const trees = scratch_in(workspace_->trees, scratch_for_trees(segments, n));
    launch("weigh_segments", weigh_segments<Rule>, {(segments + threads - 1) / threads, threads}, stream_, rule, gram,
           leaves, segments, n, weights, trees);
    return weights;
  }

  template <scalar T>
  void mix_on_device(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    using namespace detail::cuda;
    const device_scope here(device_);
    const auto& table = tiles<T>(window, 1);
    if (table.count == 0) return;
    const auto over_tiles = [&]<class List>(const List& list) {
      using namespace detail::cuda;  // again, as above
      launch("mix_tiles", mix_tiles<format_of<T>, List>, {table.count, threads_per_block}, stream_,
             static_cast<const detail::tile*>(table.tiles.data()), list, static_cast<int>(vectors.size()), weights,
             stored(out));
    };
    if (vectors.size() <= 2)
      over_tiles(listed<2>(vectors));
    else if (vectors.size() <= most_in_registers)
      over_tiles(listed<most_in_registers>(vectors));
    else
      over_tiles(addresses<T>(vectors));
  }

  /// values[i] = Σₖ pieces[k·count + i], in the order of k.
  void add_pieces(const double* pieces, std::size_t number, std::size_t count, double* values) const {
    using namespace detail::cuda;
    if (count == 0) return;
    const device_scope here(device_);
    launch("add_pieces", detail::cuda::add_pieces<>, {blocks_for(count), threads_per_block}, stream_, pieces, number,
           count, values);
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
  /// All three steps for two vectors in one kernel, if they fit into the registers and the shared memory of the device.
  /// @return whether they do; nothing has been enqueued otherwise
  template <scalar T, tree_rule Rule>
  bool combine_two(const Rule& rule, const slice& window, std::span<const T* const> vectors, T* out) const {
    using namespace detail::cuda;
    const device_scope here(device_);
    const auto& table = tiles<T>(window, 1);
    const auto kernel = combine_on_chip<format_of<T>, Rule>;
    const auto limits = workspace_->limits_of(kernel, threads_per_block, blocks_per_multiprocessor, device_);
    const auto blocks = std::min(limits.blocks, table.count);
    if (blocks == 0) return false;
    const auto of_one = (table.count + blocks - 1) / blocks;
    const auto in_shared = of_one > tiles_in_registers ? of_one - tiles_in_registers : 0;
    const auto shared_bytes = in_shared * shared_bytes_per_tile;
    if (shared_bytes > limits.shared_bytes) return false;
    double* const partials = scratch_in(workspace_->partials, 3 * table.count);
    const auto code =
        try_launch(kernel, {blocks, threads_per_block, shared_bytes, true}, stream_, rule,
                   static_cast<const detail::tile*>(table.tiles.data()), table.count,
                   static_cast<const std::size_t*>(table.first_tile.data()), listed<2>(vectors), partials, stored(out));
    if (code == cudaErrorCooperativeLaunchTooLarge) {  // a share of the device only
      static_cast<void>(cudaGetLastError());
      return false;
    }
    check("combine_on_chip", code);
    return true;
  }

  static std::size_t blocks_for(std::size_t count) {
    return (count + detail::cuda::threads_per_block - 1) / detail::cuda::threads_per_block;
  }

  /// Elements as kernels see them: by their number format.
  template <class T>
  static auto stored(T* elements) {
    using storage = detail::cuda::storage_of<format_of<std::remove_const_t<T>>>;
    return reinterpret_cast<std::conditional_t<std::is_const_v<T>, const storage*, storage*>>(elements);
  }

  double* scratch_in(detail::cuda::growing_buffer& memory, std::size_t count) const {
    return memory.at_least(count, stream_, device_);
  }

  /// @param part  tiles are so many times shorter than the longest
  template <scalar T>
  const detail::cuda::tile_table& tiles(const slice& window, unsigned part) const {
    return workspace_->tables.find(window, detail::cuda::tile_length<format_of<T>> / part, stream_, device_);
  }

  template <int Count, scalar T>
  static detail::cuda::vector_list<Count> listed(std::span<const T* const> vectors) {
    detail::cuda::vector_list<Count> list{};
    std::copy(vectors.begin(), vectors.end(), list.at);
    return list;
  }

  /// More addresses than a kernel's argument lists, in the workspace.
  template <scalar T>
  const void* const* addresses(std::span<const T* const> vectors) const {
    static_assert(sizeof(double) == sizeof(void*));
    double* const scratch = scratch_in(workspace_->addresses, vectors.size());
    detail::cuda::write_by_arguments<const T*>(vectors, reinterpret_cast<const T**>(scratch), stream_);
    return reinterpret_cast<const void* const*>(scratch);
  }

  cudaStream_t stream_;
  int device_;
  std::shared_ptr<detail::cuda::workspace> workspace_;
};

/// @cond internal
/// See core/concepts.hpp.
inline cuda_space for_recombining(const cuda_space& space) { return space; }
/// @endcond
static_assert(detail::recombines_in_double<cuda_space, float>);

}  // namespace adasum
