// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <ATen/ATen.h>
#include <ATen/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <adasum/core/concepts.hpp>
#include <adasum/core/error.hpp>
#include <adasum/core/gram.hpp>
#include <adasum/core/scalar.hpp>
#include <adasum/core/segments.hpp>
#include <adasum/core/torch_types.hpp>
#include "aten/segment_sums.hpp"
#include "aten/uploads.hpp"
#include "aten/workspace.hpp"

namespace adasum {

/// The execution space of one of PyTorch's devices, whichever that is: all arithmetic is done by PyTorch's own operators, on
/// the device's current stream. It needs no compiler for the device.
///
///     const adasum::aten_space exec(gradient.device());
///     adasum::adasum_allreduce(exec, ranks, adasum::elements<float>(gradient), segments);
///
/// All products and sums are made in double, which the device must offer. A number of operators that depends on the
/// length of the window alone, not on how many segments it has (up to 21,845 of a pair), computes all inner products. Sums are
/// made in blocks, whose order the window alone gives, so that results have the same bits in every run and on all devices of a
/// kind; on CPUs, with the same number of threads. For float, double, c10::Half and c10::BFloat16.
///
/// Working memory is up to 256 MiB. measure() returns when the Gram matrices are there; mix() and copy() return at once where
/// the device's operators do. Copies are handles to one workspace, which serves one thread at a time. Errors of PyTorch's
/// (c10::Error) pass through: out of memory, an operator that the device lacks.
class aten_space {
 public:
  static constexpr std::string_view name = "pytorch";

  /// @param device     with its number, unless there is only one of its type
  /// @param processor  which one it is, where ranks may have several that round differently; a few characters
  /// @throws bad_input  the device meta
  explicit aten_space(at::Device device, const std::string& processor = {})
      : workspace_(std::make_shared<detail::aten::workspace>(device, processor)) {
    if (device.is_meta()) throw bad_input("adasum::aten_space: the device meta has no memory");
  }

  /// The one that it was made for.
  at::Device device() const { return workspace_->device; }
  /// Whether both work on one device.
  friend bool operator==(const aten_space& a, const aten_space& b) { return a.device() == b.device(); }

  /// Elements in memory of the device.
  template <scalar T>
  class memory {
   public:
    explicit memory(at::Tensor elements) : elements_(std::move(elements)) {}
    T* data() const { return static_cast<T*>(elements_.data_ptr()); }

   private:
    at::Tensor elements_;
  };
  template <scalar T>
  memory<T> allocate(std::size_t count) const {
    return memory<T>(at::empty({static_cast<std::int64_t>(count)}, options().dtype(detail::torch_type<T>())));
  }

  /// Returns when gram, an array of the host, is there.
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    const auto n = vectors.size(), packed = packed_size(n);
    std::fill_n(gram, window.segments.size() * packed, 0.0);
    const auto pieces = cut(window, packed);
    if (pieces.empty()) return;
    const auto first = pieces.front().first, last = pieces.back().last;
    const auto sums = at::zeros({as_int(packed), as_int(last - first)}, options());
    for (const auto& part : pieces)
      sums.narrow(1, as_int(part.first - first), as_int(part.last - part.first))
          .add_(detail::aten::sums_of_ranges(products_of(vectors, part), part.ranges, workspace_->up));
    const at::Tensor found = sums.t().contiguous().cpu();
    std::copy_n(static_cast<const double*>(found.data_ptr()), found.numel(), gram + first * packed);
  }

  /// `weights` is read before this returns.
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    mix_into(window, vectors, weights, out);
  }

  template <scalar From, scalar To>
  void copy(const From* from, To* to, std::size_t count) const {
    if (count) tensor(to, count).copy_(tensor(from, count), true);
  }

  /// As the others, since these compute in double, too.
  template <scalar T>
  void measure_in_double(const slice& window, std::span<const T* const> vectors, double* gram) const {
    measure(window, vectors, gram);
  }
  template <scalar From, scalar To>
  void mix_in_double(const slice& window, std::span<const From* const> vectors, const double* weights, To* out) const {
    mix_into(window, vectors, weights, out);
  }
  friend aten_space for_recombining(const aten_space& space) { return space; }

  /// Blocks until the current stream has done all that was started.
  void fence() const {
    if (!device().is_cpu()) stream().synchronize();
    workspace_->up.all_ended();
  }

  // ── device_space ──

  void upload(const void* from, void* to, std::size_t bytes) const {
    if (bytes) on_device(to, bytes).copy_(of_host(from, bytes), true);
  }
  void download(const void* from, void* to, std::size_t bytes) const {
    if (bytes) of_host(to, bytes).copy_(on_device(from, bytes), true);
  }
  /// Within the device, or between two of its kind that see each other's memory.
  void transfer(const void* from, void* to, std::size_t bytes) const {
    if (bytes) on_device(to, bytes).copy_(on_device(from, bytes), true);
  }

  /// Memory of the host, for copies.
  class host_memory {
   public:
    explicit host_memory(std::size_t bytes) : bytes_(at::empty({as_int(bytes)}, at::kByte)) {}
    std::byte* data() const { return static_cast<std::byte*>(bytes_.data_ptr()); }

   private:
    at::Tensor bytes_;
  };

  /// A moment on the current stream.
  class event {
   public:
    void wait() {
      if (!moment_) return;
      while (!moment_->query()) std::this_thread::yield();
    }

   private:
    friend aten_space;
    std::optional<c10::Event> moment_;
  };
  void record(event& moment) const {
    if (device().is_cpu()) return;
    if (!moment.moment_) moment.moment_.emplace(device().type());
    moment.moment_->record(stream());
  }

 private:
  /// A part of a window that is worked on at once.
  struct piece {
    std::size_t begin, end;                // elements, counted from the window's origin
    std::size_t first, last;               // its segments
    detail::aten::column_ranges ranges{};  // which of its elements each of these has
    std::int64_t size() const { return as_int(end - begin); }
  };
  /// How many doubles each step works on.
  static constexpr std::size_t step = std::size_t{1} << 23;

  static constexpr std::int64_t as_int(std::size_t number) { return static_cast<std::int64_t>(number); }

  /// @param rows  of doubles for each element
  static std::vector<piece> cut(const slice& window, std::size_t rows) {
    const auto most = std::max(step / rows, std::size_t{1} << 16);
    const auto most_segments = std::max<std::size_t>(most / detail::aten::block, 1);
    std::vector<piece> pieces;
    for (std::size_t k = 0; k < window.segments.size(); ++k)
      for (auto [begin, end] = window.local(k); begin < end;) {
        if (pieces.empty() || pieces.back().size() == as_int(most) ||
            pieces.back().last - pieces.back().first >= most_segments)
          pieces.push_back({begin, begin, k, k});
        auto& last = pieces.back();
        const auto until = std::min(end, last.begin + most);
        for (; last.last < k; ++last.last) last.ranges.add(0, 0);  // segments without elements
        last.last = k + 1;
        last.ranges.add(as_int(begin - last.begin), as_int(until - last.begin));
        begin = last.end = until;
      }
    return pieces;
  }

  /// Row packed_index(i, j): the products of the elements of vectors i and j.
  template <scalar T>
  at::Tensor products_of(std::span<const T* const> vectors, const piece& part) const {
    const auto n = as_int(vectors.size());
    const auto numbers = at::empty({n, part.size()}, options());
    for (std::int64_t i = 0; i < n; ++i)
      numbers.select(0, i).copy_(tensor(vectors[static_cast<std::size_t>(i)] + part.begin, part.end - part.begin));
    auto products = at::empty({as_int(packed_size(vectors.size())), part.size()}, options());
    for (std::int64_t i = 0, row = 0; i < n; row += ++i) {
      auto of_row = products.narrow(0, row, i + 1);
      at::mul_out(of_row, numbers.narrow(0, 0, i + 1), numbers.select(0, i));
      if constexpr (std::same_as<T, double>) {  // of other types, no square underflows
        const auto number = numbers.select(0, i), square = products.select(0, row + i);
        square.masked_fill_(square.eq(0).logical_and_(number.ne(0)), std::numeric_limits<double>::denorm_min());
      }
    }
    return products;
  }

  template <scalar From, scalar To>
  void mix_into(const slice& window, std::span<const From* const> vectors, const double* weights, To* out) const {
    const auto n = vectors.size();
    for (const auto& part : cut(window, n)) {
      const auto count = part.last - part.first;
      std::vector<double> of_vectors(n * count);  // those of the first vector, then those of the second …
      for (std::size_t k = 0; k < count; ++k)
        for (std::size_t i = 0; i < n; ++i) of_vectors[i * count + k] = weights[(part.first + k) * n + i];
      at::Tensor of_elements, sum;
      if (count > 1)
        of_elements = at::repeat_interleave(workspace_->up.numbers(of_vectors).view({as_int(n), as_int(count)}),
                                            workspace_->up.numbers(part.ranges.length), 1, part.size());
      for (std::size_t i = 0; i < n; ++i) {
        const auto own = std::span(of_vectors).subspan(i * count, count);
        const auto zeros = std::ranges::count(own, 0.0);
        if (zeros == as_int(count)) continue;
        auto term = tensor(vectors[i] + part.begin, part.end - part.begin).to(at::kDouble, false, true);
        if (count == 1) {
          term.mul_(own.front());
        } else {
          const auto weight = of_elements.select(0, as_int(i));
          term.mul_(weight);
          if (zeros) term.masked_fill_(weight.eq(0), 0);  // also where the vector holds NaN
        }
        sum = sum.defined() ? sum.add_(term) : term;
      }
      const auto to = tensor(out + part.begin, part.end - part.begin);
      if (sum.defined())
        to.copy_(sum);
      else
        to.zero_();
    }
  }

  at::TensorOptions options() const { return at::TensorOptions().device(device()).dtype(at::kDouble); }
  template <class T>
  at::Tensor tensor(T* elements, std::size_t count) const {
    return detail::tensor_over(elements, count, options().dtype(detail::torch_type<std::remove_const_t<T>>()));
  }
  template <class Byte>
  at::Tensor on_device(Byte* bytes, std::size_t count) const {
    return detail::tensor_over(bytes, count, options().dtype(at::kByte));
  }
  template <class Byte>
  static at::Tensor of_host(Byte* bytes, std::size_t count) {
    return detail::tensor_over(bytes, count, at::TensorOptions().dtype(at::kByte));
  }
  c10::Stream stream() const { return c10::impl::VirtualGuardImpl(device().type()).getStream(device()); }
  /// Spaces that round alike may be used together.
  friend std::string_view rounding_of(detail::own_type, const aten_space& space) { return space.workspace_->rounding; }

  std::shared_ptr<detail::aten::workspace> workspace_;
};

}  // namespace adasum
