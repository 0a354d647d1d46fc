// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../../core/float_bits.hpp"
#include "../../core/segments.hpp"
#include "../../core/wire_losses.hpp"
#include "compiled.hpp"
#include "convert.hpp"
#include "instruction_set.hpp"
#include "measure.hpp"
#include "mix.hpp"
#include "scratch.hpp"
#include "short_segments.hpp"

namespace adasum {

/// The execution space of the calling thread: every call computes before it returns. Uses the best vector instructions
/// that the processor has, chosen at run time. Has no state, so one object may serve any number of threads.
/// Fulfils the contract of the concept execution_space for every scalar.
class serial_space {
 public:
  static constexpr std::string_view name = "serial";
  /// What has been measured is still in the second-level cache when it is mixed.
  static constexpr std::size_t round_bytes = std::size_t{256} << 10;

  /// Uses the best instructions that this processor has.
  serial_space() = default;
  /// Uses the given instructions. @pre the processor has them
  explicit serial_space(instruction_set instructions) : instructions_(instructions) {}

  /// The instructions that it uses.
  instruction_set instructions() const { return instructions_; }
  /// Not for classes that derive from it, which may have more members.
  template <std::same_as<serial_space> Space>
  friend bool operator==(const Space& a, const Space& b) {
    return a.instructions_ == b.instructions_;
  }
  /// Ranks whose spaces differ in this do not round alike, so they could not end bitwise identical.
  std::string_view arithmetic() const { return to_string(instructions_); }

  /// Uninitialised memory on whole cache lines, owned by what is returned.
  template <scalar T>
  auto allocate(std::size_t count) const {
    struct release {
      void operator()(T* elements) const { ::operator delete(static_cast<void*>(elements), cache_line); }
    };
    struct buffer {
      std::unique_ptr<T[], release> elements;
      T* data() const { return elements.get(); }
    };
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return buffer{std::unique_ptr<T[], release>(static_cast<T*>(::operator new(count * sizeof(T), cache_line)))};
  }

  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    measure(window, vectors, gram, bytes_of<T>(window, vectors.size()));
  }
  /// For a part of a larger window, whose vectors have so many bytes together: those that most likely come from memory
  /// are fetched ahead.
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram, std::size_t bytes) const {
    const bool from_memory = detail::serial::come_from_memory(bytes);
    const std::size_t n = vectors.size();
    if (n <= 2) {
      const T* pair[2] = {};
      const auto measure_short = measure_short_pairs(window, vectors[0], vectors[n - 1], packed_size(n), gram);
      const auto measure_piece = [&](const T* const* at, std::size_t length, double* sums) {
        if (n == 1)
          detail::serial::run<detail::serial::measure_few<1, T>>(instructions_, at, length, from_memory, sums,
                                                                 std::size_t{0});
        else
          detail::serial::run<detail::serial::measure_few<2, T>>(instructions_, at, length, from_memory, sums,
                                                                 std::size_t{0});
      };
      measure_pieces(window, vectors, gram, static_cast<const T**>(pair), measure_short, measure_piece);
    } else {
      measure_in_double(window, vectors, gram, from_memory);
    }
  }
  /// Every product and sum in double, also those of one or two vectors of narrower elements.
  template <scalar T>
  void measure_in_double(const slice& window, std::span<const T* const> vectors, double* gram) const {
    measure_in_double(window, vectors, gram, detail::serial::come_from_memory(bytes_of<T>(window, vectors.size())));
  }

  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    mix(window, vectors, weights, out, bytes_of<T>(window, vectors.size()));
  }
  /// For a part of a larger window, whose vectors have so many bytes together: a result that no cache can hold is not
  /// written to one.
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out,
           std::size_t bytes) const {
    const bool from_memory = detail::serial::come_from_memory(bytes_of<T>(window, vectors.size()));
    const bool past_caches = writes_past_caches<T>(vectors, out, bytes);
    detail::serial::scratch<mixing, const T*, few_vectors> some(vectors.size());
    detail::serial::scratch<mixing, double, few_vectors> nonzero(vectors.size());
    mix_pieces(window, vectors, weights, out, some.data(), nonzero.data(),
               [&](const T* const* at, std::size_t n, const double* w, std::size_t length, T* to) {
                 // Two that are left of more may cancel, which nobody has looked at.
                 if (n == 1 || vectors.size() == 2)
                   mix_few(at, n, w, length, from_memory, past_caches, to);
                 else
                   detail::serial::run<detail::serial::mix_many<T>>(instructions_, at, n, length, from_memory, w, to);
               });
    if (past_caches) detail::serial::fence_bypassing_stores();
  }

  /// As mix, with products and sums in double: of vectors whose sum is much shorter than they are; or to or from doubles, of
  /// sums that are combined further.
  template <scalar From, scalar To>
    requires(std::same_as<From, double> || std::same_as<To, double> || std::same_as<From, To>)
  void mix_in_double(const slice& window, std::span<const From* const> vectors, const double* weights, To* out) const {
    const bool from_memory = detail::serial::come_from_memory(bytes_of<From>(window, vectors.size()));
    detail::serial::scratch<mixing, const From*, few_vectors> some(vectors.size());
    detail::serial::scratch<mixing, double, few_vectors> nonzero(vectors.size());
    mix_pieces(window, vectors, weights, out, some.data(), nonzero.data(),
               [&](const From* const* at, std::size_t n, const double* w, std::size_t length, To* to) {
                 detail::serial::run<detail::serial::mix_many<From, To>>(instructions_, at, n, length, from_memory, w,
                                                                         to);
               });
  }

  /// Of all vectors together in the window.
  template <scalar T>
  static constexpr std::size_t bytes_of(const slice& window, std::size_t n) {
    return n * window.range.size() * sizeof(T);
  }

  template <scalar T>
  void copy(const T* from, T* to, std::size_t count) const {
    if (count != 0) std::memcpy(static_cast<void*>(to), from, count * sizeof(T));
  }

  /// Between float and a 16-bit type, rounded to nearest even.
  template <scalar From, scalar To>
    requires(!std::same_as<From, To> && std::same_as<detail::serial::compute_type<From>, float> &&
             std::same_as<detail::serial::compute_type<To>, float>)
  void copy(const From* from, To* to, std::size_t count) const {
    detail::serial::run<detail::serial::convert<From, To>>(instructions_, from, to, count);
  }
  /// The same, and adds to `losses` what it lost.
  template <scalar To>
    requires(sizeof(To) == 2)
  void copy(const float* from, To* to, std::size_t count, wire_losses& losses) const {
    detail::serial::run<detail::serial::convert_and_count<To>>(instructions_, from, to, count, &losses);
  }

  void fence() const {}

 protected:
  static constexpr std::size_t few_vectors = 64;
  struct measuring;  // what scratch is for
  struct mixing;

  /// measure_piece(pointers to the first elements, how many, their inner products so far) for each segment, and
  /// measure_short(segment) for runs of short ones, see for_each_piece.
  /// @param at  as many elements as there are vectors
  template <scalar T, class MeasureShort, class Measure>
  static void measure_pieces(const slice& window, std::span<const T* const> vectors, double* gram, const T** at,
                             MeasureShort&& measure_short, Measure&& measure_piece) {
    const std::size_t packed = packed_size(vectors.size());
    std::fill_n(gram, window.segments.size() * packed, 0.0);
    for_each_piece<T>(window, measure_short, [&](std::size_t k, index_range piece) {
      for (std::size_t i = 0; i < vectors.size(); ++i) at[i] = vectors[i] + piece.begin;
      measure_piece(at, piece.size(), gram + k * packed);
    });
  }
  template <scalar T>
  auto measure_short_pairs(const slice& window, const T* a, const T* b, std::size_t entries, double* gram) const {
    return [&window, a, b, entries, gram, set = instructions_](auto* remaining) {
      detail::serial::run<detail::serial::measure_short_pairs>(set, a, b, entries, &window, remaining, gram);
    };
  }

  /// mix_piece(pointers to the first elements, number of vectors, their weights, number of elements, to) for each segment,
  /// but for short ones. Vectors of weight 0 are left out, so that NaN in them does not matter.
  /// @param at, nonzero  as many elements as there are vectors
  template <scalar T, scalar Out, class Mix>
  void mix_pieces(const slice& window, std::span<const T* const> vectors, const double* weights, Out* out, const T** at,
                  double* nonzero, Mix&& mix_piece) const {
    constexpr bool converts = !std::same_as<T, Out>;  // there is no kernel for short segments then
    const auto mix_short = [&](auto* remaining) {
      detail::serial::run<detail::serial::mix_short>(instructions_, vectors.data(), vectors.size(), &window, remaining,
                                                     weights, out);
    };
    for_each_piece<std::conditional_t<converts, double, T>>(window, mix_short, [&](std::size_t k, index_range piece) {
      const double* const w = weights + k * vectors.size();
      std::size_t n = 0;
      for (std::size_t i = 0; i < vectors.size(); ++i) {
        if (detail::is_zero(w[i])) continue;
        at[n] = vectors[i] + piece.begin;
        nonzero[n++] = w[i];
      }
      if (n == 0)  // all bits zero is 0 in every format
        std::memset(static_cast<void*>(out + piece.begin), 0, piece.size() * sizeof(Out));
      else
        mix_piece(at, n, nonzero, piece.size(), out + piece.begin);
    });
  }

  /// Whether a result of vectors of so many bytes together bypasses the caches. Not a result that is one of them, whose
  /// lines are in the caches.
  template <scalar T>
  static bool writes_past_caches(std::span<const T* const> vectors, const T* out, std::size_t bytes) {
    return detail::serial::goes_to_memory(bytes) && std::ranges::find(vectors, out) == vectors.end();
  }

  /// One or two vectors.
  template <scalar T>
  void mix_few(const T* const* at, std::size_t n, const double* w, std::size_t length, bool from_memory,
               bool past_caches, T* out) const {
    if (n == 1)
      detail::serial::run<detail::serial::mix_few<1, T>>(instructions_, at, length, from_memory, past_caches, w, out);
    else
      detail::serial::run<detail::serial::mix_few<2, T>>(instructions_, at, length, from_memory, past_caches, w, out);
  }

 private:
  template <scalar T>
  void measure_in_double(const slice& window, std::span<const T* const> vectors, double* gram, bool from_memory) const {
    const std::size_t n = vectors.size();
    measure_scratch<T> scratch(n);
    detail::serial::scratch<measuring, const T*, few_vectors> some(n);
    detail::serial::scratch<measuring, double, few_vectors * detail::serial::few_elements> doubles(
        std::same_as<T, float> ? n * detail::serial::few_elements : 0);
    const auto measure_short = [&](auto* remaining) {
      detail::serial::run<detail::serial::measure_short>(instructions_, vectors.data(), n, &window, remaining,
                                                         doubles.data(), gram);
    };
    const auto measure_piece = [&](const T* const* at, std::size_t length, double* sums) {
      detail::serial::run<detail::serial::measure_many<T>>(
          instructions_, at, n, length, from_memory, scratch.elements.data(), scratch.at.data(), sums, std::size_t{0});
    };
    measure_pieces(window, vectors, gram, some.data(), measure_short, measure_piece);
  }

  /// What detail::serial::measure_many needs for n vectors.
  template <scalar T>
  struct measure_scratch {
    using kernel = detail::serial::measure_many<T>;
    using element = typename kernel::element;

    explicit measure_scratch(std::size_t n) : elements(n * kernel::scratch_length(n)), at(n) {}

    detail::serial::scratch<measure_scratch, element, 32768 / sizeof(element)> elements;
    detail::serial::scratch<measure_scratch, const element*, few_vectors> at;
  };

  /// visit(segment, its elements in the window) for each segment that has any. But where short segments of floats follow
  /// each other, visit_short(&segments that remain), which takes away all of them.
  template <scalar T, class VisitShort, class Visitor>
  [[gnu::always_inline]] static void for_each_piece(const slice& window, VisitShort&& visit_short, Visitor&& visit) {
    index_range remaining = window.touched();
    while (!remaining.empty()) {
      const auto k = remaining.begin;
      if constexpr (std::same_as<T, float>)
        if (window.segments.range(k).size() <= detail::serial::few_elements) {
          visit_short(&remaining);
          continue;
        }
      if (const auto piece = window.local(k); !piece.empty()) visit(k, piece);
      ++remaining.begin;
    }
  }

  static constexpr std::align_val_t cache_line{64};
  instruction_set instructions_ = best_instruction_set();
};

}  // namespace adasum
