// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

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
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "device.hpp"
#include "elements.hpp"
#include "measure.hpp"
#include "memory.hpp"
#include "mix.hpp"
#include "on_chip.hpp"
#include "weigh.hpp"
#include "words.hpp"
#include "workspace.hpp"

namespace adasum {

/// The execution space of one CUDA stream.
///
///     adasum::cuda_space exec{stream};
///     adasum::adasum_pair(exec, a, b, out);   // thrust::device_vector<float>, or std::span over memory of the device
///
/// adasum_pair and adasum_tree are enqueued and return at once, as kernel launches do: weights are computed on the
/// device, the host waits for nothing, and from the second call with the same segments on nothing is allocated; so they
/// can be recorded in a CUDA graph, which must not outlive the space. Calls that return a report (combine, allreduce)
/// wait for the stream where the host reads inner products, and nowhere else.
///
/// One kernel for each of measure and mix whatever the number of segments; the order of additions is fixed by the
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
  explicit cuda_space(cudaStream_t stream, int device = cuda_backend::current_device())
      : stream_(stream), device_(device), workspace_(std::make_shared<cuda_backend::workspace>()) {}

  cudaStream_t stream() const { return stream_; }
  int device() const { return device_; }
  /// Ranks whose spaces differ in this do not round alike, so they could not end bitwise identical.
  std::string_view arithmetic() const { return "tiles of 16 KiB"; }

  /// Uninitialised memory of the device, which message layers can share; waits for the device. @throws cuda_error
  template <scalar T>
  cuda_backend::shareable_buffer<T> allocate(std::size_t count) const {
    const cuda_backend::device_scope here(device_);
    return cuda_backend::shareable_buffer<T>(count);
  }
  /// The same in the order of the stream, which waits for nothing. @throws cuda_error
  template <scalar T>
  cuda_backend::buffer<T> allocate_in_order(std::size_t count) const {
    return {count, stream_, device_};
  }

  /// Returns when gram, an array of the host, is there.
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    const auto entries = window.segments.size() * packed_size(vectors.size());
    if (window.range.empty()) return std::fill_n(gram, entries, 0.0), void();
    const cuda_backend::device_scope here(device_);
    const double* const measured = measure_on_device<T>(window, vectors);
    double* const room = workspace_->host_room(entries);
    download(measured, room, entries * sizeof(double));
    fence();
    std::copy_n(room, entries, gram);
  }

  /// `weights`, an array of the host, is read before this returns; the kernel is only enqueued.
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    if (window.range.empty()) return;
    const cuda_backend::device_scope here(device_);
    const auto count = window.segments.size() * vectors.size();
    double* const room = room_for(workspace_->weights, count);
    write(std::span(weights, count), room);
    mix_on_device<T>(window, vectors, room, out);
  }

  /// Enqueued.
  template <scalar T>
  void copy(const T* from, T* to, std::size_t count) const {
    transfer(from, to, count * sizeof(T));
  }
  /// Between float and a 16-bit type, rounded to nearest even. Enqueued.
  template <scalar From, scalar To>
    requires(!std::same_as<From, To> &&
             (format_of<From> == number_format::binary32 || format_of<To> == number_format::binary32))
  void copy(const From* from, To* to, std::size_t count) const {
    if (count == 0) return;
    const cuda_backend::device_scope here(device_);
    cuda_backend::launch("convert", cuda_backend::convert<format_of<From>, format_of<To>>,
                         {blocks_for(count), cuda_backend::threads_per_block}, stream_, raw(from), raw(to), count);
  }

  /// Blocks until the stream has done all that was enqueued.
  void fence() const {
    const cuda_backend::device_scope here(device_);
    cuda_backend::check("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
  }

  // ── stream_ordered_space ──

  /// measure → weigh → mix under a rule along the tree, enqueued: the host waits for nothing. What weighing on the
  /// device means where gradients cancel or squares leave the range of double: exec/cuda/weigh.hpp. `rule` is copied to
  /// the device.
  /// @throws bad_input  new segments, or more memory needed, while the stream is being recorded in a graph
  template <scalar T, tree_rule Rule>
    requires std::is_trivially_copyable_v<Rule>
  void combine_async(const Rule& rule, const slice& window, std::span<const T* const> vectors, T* out) const {
    if (window.range.empty()) return;
    const cuda_backend::device_scope here(device_);
    if (vectors.size() == 2 && combine_on_chip<T>(rule, window, vectors, out)) return;
    const double* const gram = measure_on_device<T>(window, vectors);
    mix_on_device<T>(window, vectors, weigh_on_device(rule, gram, window.segments.size(), vectors.size()), out);
  }

  // The steps of combine_async, for schedules that exchange inner products between them: device pointers throughout.

  /// gram[k·packed_size(n) + p], in the workspace, until the next call.
  template <scalar T>
  double* measure_on_device(const slice& window, std::span<const T* const> vectors) const {
    const cuda_backend::device_scope here(device_);
    const auto n = vectors.size(), entries = packed_size(n), segments = window.segments.size();
    const bool few = n <= cuda_backend::most_in_registers;
    const auto& table = tiles<T>(window, few ? 1 : cuda_backend::packs_per_thread);
    double* const partials = room_for(workspace_->partials, entries * table.count);
    double* const gram = room_for(workspace_->gram, entries * segments);
    const auto measure_tiles = [&](auto kernel, const auto& list) {
      cuda_backend::launch("measure_tiles", kernel, {table.count, cuda_backend::threads_per_block}, stream_,
                           static_cast<const tile*>(table.tiles.data()), table.count, list, static_cast<int>(n),
                           partials);
    };
    if (table.count > 0) {
      if (n <= 2)
        measure_tiles(cuda_backend::measure_tiles<format_of<T>, 2>, listed<2>(vectors));
      else if (n <= 4)
        measure_tiles(cuda_backend::measure_tiles<format_of<T>, 4>, listed<4>(vectors));
      else if (few)
        measure_tiles(cuda_backend::measure_tiles<format_of<T>, cuda_backend::most_in_registers>,
                      listed<cuda_backend::most_in_registers>(vectors));
      else
        measure_tiles(cuda_backend::measure_tiles_of_many<format_of<T>>, addresses<T>(vectors));
    }
    cuda_backend::launch("add_tiles", cuda_backend::add_tiles<>, {segments * entries, cuda_backend::threads_per_block},
                         stream_, static_cast<const double*>(partials), table.count,
                         static_cast<const std::size_t*>(table.first_tile.data()), entries, gram);
    return gram;
  }

  /// weights[k·n + i], in the workspace, until the next call.
  /// @param leaves  n numbers on the device: how many gradients each vector combines; null: one
  template <tree_rule Rule>
    requires std::is_trivially_copyable_v<Rule>
  double* weigh_on_device(const Rule& rule, const double* gram, std::size_t segments, std::size_t n,
                          const double* leaves = nullptr) const {
    const cuda_backend::device_scope here(device_);
    constexpr unsigned threads = 64;
    double* const weights = room_for(workspace_->weights, segments * n);
    double* const trees = room_for(workspace_->trees, cuda_backend::room_for_trees(segments, n));
    cuda_backend::launch("weigh_segments", cuda_backend::weigh_segments<Rule>,
                         {(segments + threads - 1) / threads, threads}, stream_, rule, gram, leaves, segments, n,
                         weights, trees);
    return weights;
  }

  template <scalar T>
  void mix_on_device(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    const cuda_backend::device_scope here(device_);
    const auto& table = tiles<T>(window, 1);
    if (table.count == 0) return;
    const auto mix_tiles = [&]<class List>(const List& list) {
      cuda_backend::launch("mix_tiles", cuda_backend::mix_tiles<format_of<T>, List>,
                           {table.count, cuda_backend::threads_per_block}, stream_,
                           static_cast<const tile*>(table.tiles.data()), list, static_cast<int>(vectors.size()),
                           weights, raw(out));
    };
    if (vectors.size() <= 2)
      mix_tiles(listed<2>(vectors));
    else if (vectors.size() <= cuda_backend::most_in_registers)
      mix_tiles(listed<cuda_backend::most_in_registers>(vectors));
    else
      mix_tiles(addresses<T>(vectors));
  }

  /// values[i] = Σₖ pieces[k·count + i], in the order of k.
  void add_pieces(const double* pieces, std::size_t number, std::size_t count, double* values) const {
    if (count == 0) return;
    const cuda_backend::device_scope here(device_);
    cuda_backend::launch("add_pieces", cuda_backend::add_pieces<>, {blocks_for(count), cuda_backend::threads_per_block},
                         stream_, pieces, number, count, values);
  }

  /// Enqueues to[i] = values[i] from memory of the host, which is not needed any more when this returns.
  void write(std::span<const double> values, double* to) const {
    const cuda_backend::device_scope here(device_);
    constexpr std::size_t few = 8 * cuda_backend::words_at_once;  // above, one copy is faster than so many launches
    if (values.size() <= few) return cuda_backend::write_words(values, to, stream_);
    transfer(values.data(), to, values.size_bytes());
    fence();
  }

  // ── device_space ──

  /// Enqueues a copy between any two places of the device's or the host's. From or to ordinary (not pinned) memory of
  /// the host, it may block until the copy is done.
  void transfer(const void* from, void* to, std::size_t bytes) const {
    if (bytes == 0) return;
    const cuda_backend::device_scope here(device_);
    cuda_backend::check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
  }

  void upload(const void* from, void* to, std::size_t bytes) const { transfer(from, to, bytes); }
  void download(const void* from, void* to, std::size_t bytes) const { transfer(from, to, bytes); }

  using host_memory = cuda_backend::pinned_buffer<std::byte>;
  using event = cuda_backend::event;
  /// A moment behind all that has been enqueued.
  void record(event& moment) const {
    const cuda_backend::device_scope here(device_);
    moment.record(stream_);
  }

  /// Whether kernels can read and write at this address.
  bool can_reach(const void* address) const {
    cudaPointerAttributes found{};
    if (cudaPointerGetAttributes(&found, address) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    if (found.type == cudaMemoryTypeUnregistered)
      return cuda_backend::attribute(cudaDevAttrPageableMemoryAccess, device_) != 0;
    if (found.type != cudaMemoryTypeDevice || found.device == device_) return true;
    int reachable = 0;  // whether that is enabled too cannot be asked
    cuda_backend::check("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&reachable, device_, found.device));
    return reachable != 0;
  }

 private:
  template <scalar T>
  static auto raw(const T* elements) {
    return reinterpret_cast<const cuda_backend::storage_of<format_of<T>>*>(elements);
  }
  template <scalar T>
    requires(!std::is_const_v<T>)
  static auto raw(T* elements) {
    return reinterpret_cast<cuda_backend::storage_of<format_of<T>>*>(elements);
  }
  static std::size_t blocks_for(std::size_t count) {
    return (count + cuda_backend::threads_per_block - 1) / cuda_backend::threads_per_block;
  }
  double* room_for(cuda_backend::growing_buffer& memory, std::size_t count) const {
    return memory.at_least(count, stream_, device_);
  }

  template <scalar T>
  const cuda_backend::tile_table& tiles(const slice& window, unsigned part) const {
    return workspace_->tables.find(window, cuda_backend::tile_length<format_of<T>> / part, stream_, device_);
  }

  template <int N, scalar T>
  static cuda_backend::vector_list<N> listed(std::span<const T* const> vectors) {
    cuda_backend::vector_list<N> list{};
    std::copy(vectors.begin(), vectors.end(), list.at);
    return list;
  }

  /// More addresses than a kernel's argument lists, in the workspace.
  template <scalar T>
  const void* const* addresses(std::span<const T* const> vectors) const {
    static_assert(sizeof(double) == sizeof(void*));
    double* const room = room_for(workspace_->addresses, vectors.size());
    cuda_backend::write_words<const T*>(vectors, reinterpret_cast<const T**>(room), stream_);
    return reinterpret_cast<const void* const*>(room);
  }

  /// @return whether the vectors fit
  template <scalar T, class Rule>
  bool combine_on_chip(const Rule& rule, const slice& window, std::span<const T* const> vectors, T* out) const {
    const auto& table = tiles<T>(window, 1);
    const auto kernel = cuda_backend::combine_on_chip<format_of<T>, Rule>;
    const auto limits = workspace_->limits_of(kernel, cuda_backend::threads_per_block,
                                              cuda_backend::blocks_per_multiprocessor, device_);
    const auto blocks = std::min(limits.blocks, table.count);
    if (blocks == 0) return false;
    const auto of_one = (table.count + blocks - 1) / blocks;
    const auto in_shared = of_one > cuda_backend::tiles_in_registers ? of_one - cuda_backend::tiles_in_registers : 0;
    const auto shared_bytes = in_shared * cuda_backend::shared_bytes_per_tile;
    if (shared_bytes > limits.shared_bytes) return false;
    double* const partials = room_for(workspace_->partials, 3 * table.count);
    const auto code = cuda_backend::try_launch(kernel, {blocks, cuda_backend::threads_per_block, shared_bytes, true},
                                               stream_, rule, static_cast<const tile*>(table.tiles.data()), table.count,
                                               static_cast<const std::size_t*>(table.first_tile.data()),
                                               listed<2>(vectors), partials, raw(out));
    if (code == cudaErrorCooperativeLaunchTooLarge) {  // a share of the device only
      static_cast<void>(cudaGetLastError());
      return false;
    }
    cuda_backend::check("combine_on_chip", code);
    return true;
  }

  cudaStream_t stream_;
  int device_;
  std::shared_ptr<cuda_backend::workspace> workspace_;
};

}  // namespace adasum
