// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "instruction_set.hpp"

/// The kernels of serial_space, by number format: tables of functions, one table for each instruction set. Vectors are
/// addresses of bytes, so that all types of a format share its kernels. measure.hpp, mix.hpp, short_segments.hpp and
/// convert.hpp say what each computes.
///
/// A format has several tables, so that a program holds the kernels of those that it uses. If the macro ADASUM_COMPILED is
/// defined, no program holds any: all are in the library adasum::compiled.
namespace adasum::detail::serial {

/// A linear combination of n vectors in double.
using mix_kernel = void(const void* const* vectors, std::size_t n, std::size_t length, bool from_memory,
                        const double* weights, void* out);
/// The same for a run of short segments.
using mix_short_kernel = void(const void* const* vectors, std::size_t n, const slice*, index_range* remaining,
                              const double* weights, void* out);

/// Two vectors.
struct pair_kernels {
  std::size_t element_bytes;
  std::size_t block_length;  ///< elements whose sums measure adds up with others'
  void (*measure)(const void* const* vectors, std::size_t length, bool from_memory, double* gram, std::size_t apart);
  void (*mix_one)(const void* const* vectors, std::size_t length, bool from_memory, bool past_caches,
                  const double* weights, void* out);
  void (*mix)(const void* const* vectors, std::size_t length, bool from_memory, bool past_caches, const double* weights,
              void* out);
  /// Null for formats whose short segments are treated as others are.
  void (*measure_short)(const void* a, const void* b, std::size_t entries, const slice*, index_range* remaining,
                        double* gram);
  mix_short_kernel* mix_short;
};

/// One vector, and any number of them in double.
struct list_kernels {
  bool converts;  ///< see block_length
  void (*measure_one)(const void* const* vectors, std::size_t length, bool from_memory, double* gram,
                      std::size_t apart);
  void (*measure)(const void* const* vectors, std::size_t n, std::size_t length, bool from_memory, void* scratch,
                  const void** at, double* gram, std::size_t apart);
  /// Null as above.
  void (*measure_short)(const void* const* vectors, std::size_t n, const slice*, index_range* remaining,
                        double* scratch, double* gram);
  mix_kernel* mix;
};

/// Linear combinations to and from doubles.
struct sum_kernels {
  mix_kernel *to_double, *from_double;
};

/// Between floats and 16 bits.
struct conversion_kernels {
  using kernel = void(const void* from, void* to, std::size_t count);
  kernel *to_float, *from_float;
};

#if defined(__x86_64__)
inline constexpr std::size_t instruction_sets = 3;
#else
inline constexpr std::size_t instruction_sets = 1;
#endif
/// The place of an instruction set in the tables.
constexpr std::size_t place_of(instruction_set set) {
  return instruction_sets == 1 ? 0
                               : static_cast<std::size_t>(set) - static_cast<std::size_t>(instruction_set::baseline);
}

/// The tables of a format.
template <number_format Format>
struct kernel_tables {
  static const pair_kernels pairs[instruction_sets];
  static const list_kernels lists[instruction_sets];
  static const sum_kernels sums[instruction_sets];                // of formats other than binary64
  static const conversion_kernels conversions[instruction_sets];  // of formats of 16 bits
};

/// What measures and mixes any number of vectors of a format.
struct kernels {
  const pair_kernels* pair;
  const list_kernels* list;
};

/// What mixes vectors in double, or to or from doubles.
struct double_mixing {
  mix_kernel* kernel;
  mix_short_kernel* of_short;        ///< null if there is none
  std::size_t from_bytes, to_bytes;  ///< of an element
};

/// How the kernels go over windows: segment by segment, and runs of short segments at once.
struct windows {
  /// For at most two vectors: what measure() and mix() do.
  static void measure_pair(const pair_kernels&, const slice& window, const void* const* vectors, std::size_t n,
                           std::size_t bytes, double* gram);
  static void mix_pair(const pair_kernels&, const slice& window, const void* const* vectors, std::size_t n,
                       const double* weights, std::size_t bytes, void* out);

  /// The Gram matrices of all segments. @param bytes  of all vectors together, of which the window is a part
  static void measure(kernels, const slice& window, const void* const* vectors, std::size_t n, bool in_double,
                      std::size_t bytes, double* gram);
  /// Of one piece: adds to `gram`, or to the sums of each block, see measure.hpp.
  static void measure_piece(kernels, const void* const* at, std::size_t n, std::size_t length, bool in_double,
                            bool from_memory, double* gram, std::size_t apart);
  /// Σ wᵢ vᵢ. @param bytes  as above
  static void mix(kernels, const slice& window, const void* const* vectors, std::size_t n, const double* weights,
                  std::size_t bytes, void* out);
  /// The same with every product and sum in double.
  static void mix_in_double(const double_mixing&, const slice& window, const void* const* vectors, std::size_t n,
                            const double* weights, void* out);
};

#if defined(ADASUM_COMPILED)
extern template struct kernel_tables<number_format::binary64>;
extern template struct kernel_tables<number_format::binary32>;
extern template struct kernel_tables<number_format::binary16>;
extern template struct kernel_tables<number_format::bfloat16>;
#endif

}  // namespace adasum::detail::serial

#if !defined(ADASUM_COMPILED)
#include "tables.hpp"
#endif

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "../../core/gram.hpp"
#include "blocks.hpp"
#include "elements.hpp"

namespace adasum::detail::serial {

/// Memory that a thread keeps, so that it allocates once for all calls of a size: a stack of blocks, each as large as any that
/// was taken there.
class kept_blocks {
 public:
  static kept_blocks& of_thread() {
    thread_local kept_blocks all;
    return all;
  }
  kept_blocks() = default;
  kept_blocks(const kept_blocks&) = delete;
  kept_blocks& operator=(const kept_blocks&) = delete;
  ~kept_blocks() {
    for (const auto& one : blocks_) ::operator delete(one.memory);
  }
  void* take(std::size_t bytes) {
    auto& [memory, size] = blocks_.at(taken_);
    if (size < bytes) {
      void* const more = ::operator new(bytes);
      ::operator delete(std::exchange(memory, more));
      size = bytes;
    }
    ++taken_;
    return memory;
  }
  void give_back() { --taken_; }

 private:
  struct block {
    void* memory = nullptr;
    std::size_t size = 0;
  };
  std::array<block, 4> blocks_;  // windows::measure() and measure_piece() take two each
  std::size_t taken_ = 0;
};

/// Uninitialised elements for the length of one call: on the stack where they are not more than Few, otherwise in memory
/// that the thread keeps.
template <class Element, std::size_t Few>
class scratch {
 public:
  explicit scratch(std::size_t count)
      : data_(count > Few ? static_cast<Element*>(kept_blocks::of_thread().take(count * sizeof(Element))) : few_) {}
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() {
    if (data_ != few_) kept_blocks::of_thread().give_back();
  }
  Element* data() { return data_; }

 private:
  alignas(64) Element few_[Few];
  Element* data_;
};

/// More are not on the stack.
inline constexpr std::size_t few_vectors = 64;

inline const void* element_at(const void* vector, std::size_t x, std::size_t bytes) {
  return static_cast<const char*>(vector) + x * bytes;
}

/// Whether the result bypasses the caches: where none could hold it. Not a result that is one of the vectors, whose lines are
/// in the caches. @param bytes  of all vectors together
inline bool goes_past_caches(const void* const* vectors, std::size_t n, std::size_t bytes, const void* out) {
  return goes_to_memory(bytes) && std::find(vectors, vectors + n, out) == vectors + n;
}

/// visit(segment, its elements in the window) for each segment that has any. But where short segments follow each other,
/// visit_short(&segments that remain), which takes away all of them.
template <class VisitShort, class Visitor>
[[gnu::always_inline]] inline void for_each_piece(const slice& window, bool short_ones_apart, VisitShort&& visit_short,
                                                  Visitor&& visit) {
  index_range remaining = window.touched();
  while (!remaining.empty()) {
    const auto k = remaining.begin;
    if (short_ones_apart && window.segments.range(k).size() <= few_elements) {
      visit_short(&remaining);
      continue;
    }
    if (const auto piece = window.local(k); !piece.empty()) visit(k, piece);
    ++remaining.begin;
  }
}

/// mix_piece(pointers to the first elements, number of vectors, their weights, number of elements, to) for each segment,
/// but for short ones. Vectors of weight 0 are left out, so that NaN in them does not matter.
template <class Mix>
[[gnu::always_inline]] inline void mix_pieces(mix_short_kernel* mix_short, const slice& window,
                                              const void* const* vectors, std::size_t n, const double* weights,
                                              std::size_t from_bytes, std::size_t to_bytes, void* out,
                                              Mix&& mix_piece) {
  scratch<const void*, few_vectors> at(n);
  scratch<double, few_vectors> nonzero(n);
  const auto mix_run = [&](index_range* remaining) { mix_short(vectors, n, &window, remaining, weights, out); };
  for_each_piece(window, mix_short != nullptr, mix_run, [&](std::size_t k, index_range piece) {
    const double* const w = weights + k * n;
    void* const to = static_cast<char*>(out) + piece.begin * to_bytes;
    std::size_t count = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (is_zero(w[i])) continue;
      at.data()[count] = element_at(vectors[i], piece.begin, from_bytes);
      nonzero.data()[count++] = w[i];
    }
    if (count == 0)  // all bits zero is 0 in every format
      std::memset(to, 0, piece.size() * to_bytes);
    else
      mix_piece(at.data(), count, nonzero.data(), piece.size(), to);
  });
}

ADASUM_INLINE void windows::measure_pair(const pair_kernels& use, const slice& window, const void* const* vectors,
                                         std::size_t n, std::size_t bytes, double* gram) {
  const std::size_t packed = packed_size(n);
  const bool from_memory = exceeds_cache(bytes);
  std::fill_n(gram, window.segments.size() * packed, 0.0);
  const auto measure_run = [&](index_range* remaining) {
    use.measure_short(vectors[0], vectors[n - 1], packed, &window, remaining, gram);
  };
  for_each_piece(window, use.measure_short != nullptr, measure_run,
                 [&](std::size_t k, index_range piece) __attribute__((always_inline)) {
                   const void* const at[] = {element_at(vectors[0], piece.begin, use.element_bytes),
                                             element_at(vectors[n - 1], piece.begin, use.element_bytes)};
                   double alone[packed_size(2)] = {};
                   use.measure(at, piece.size(), from_memory, n == 2 ? gram + k * packed : alone, 0);
                   if (n == 1) gram[k] = alone[0];
                 });
}

ADASUM_INLINE void windows::measure(kernels use, const slice& window, const void* const* vectors, std::size_t n,
                                    bool in_double, std::size_t bytes, double* gram) {
  if (n == 2 && !in_double) return measure_pair(*use.pair, window, vectors, n, bytes, gram);
  const std::size_t packed = packed_size(n);
  const bool from_memory = exceeds_cache(bytes);
  scratch<const void*, few_vectors> at(n);
  scratch<double, few_vectors * few_elements> doubles(n * few_elements);
  std::fill_n(gram, window.segments.size() * packed, 0.0);
  const auto measure_run = [&](index_range* remaining) {
    if (n == 1 && !in_double) return use.pair->measure_short(vectors[0], vectors[0], packed, &window, remaining, gram);
    use.list->measure_short(vectors, n, &window, remaining, doubles.data(), gram);
  };
  for_each_piece(window, use.pair->measure_short != nullptr, measure_run, [&](std::size_t k, index_range piece) {
    for (std::size_t i = 0; i < n; ++i) at.data()[i] = element_at(vectors[i], piece.begin, use.pair->element_bytes);
    measure_piece(use, at.data(), n, piece.size(), in_double, from_memory, gram + k * packed, 0);
  });
}

ADASUM_INLINE void windows::measure_piece(kernels use, const void* const* at, std::size_t n, std::size_t length,
                                          bool in_double, bool from_memory, double* gram, std::size_t apart) {
  if (n == 2 && !in_double) return use.pair->measure(at, length, from_memory, gram, apart);
  if (n == 1 && !in_double) return use.list->measure_one(at, length, from_memory, gram, apart);
  scratch<char, 32768> elements(n * scratch_bytes(use.list->converts, n));
  scratch<const void*, few_vectors> of_block(n);
  use.list->measure(at, n, length, from_memory, elements.data(), of_block.data(), gram, apart);
}

ADASUM_INLINE void windows::mix_pair(const pair_kernels& use, const slice& window, const void* const* vectors,
                                     std::size_t n, const double* weights, std::size_t bytes, void* out) {
  const std::size_t size = use.element_bytes;
  const bool from_memory = exceeds_cache(n * window.range.size() * size);
  const bool past_caches = goes_past_caches(vectors, n, bytes, out);
  const auto mix_run = [&](index_range* remaining) { use.mix_short(vectors, n, &window, remaining, weights, out); };
  for_each_piece(window, use.mix_short != nullptr, mix_run,
                 [&](std::size_t k, index_range piece) __attribute__((always_inline)) {
                   const double w[] = {weights[k * n], n == 2 ? weights[k * n + 1] : 0};
                   const void* const at[] = {element_at(vectors[0], piece.begin, size),
                                             element_at(vectors[n - 1], piece.begin, size)};
                   void* const to = static_cast<char*>(out) + piece.begin * size;
                   const bool has_first = !is_zero(w[0]), has_last = !is_zero(w[1]);
                   if (has_first && has_last)
                     use.mix(at, piece.size(), from_memory, past_caches, w, to);
                   else if (has_first || has_last)
                     use.mix_one(at + has_last, piece.size(), from_memory, past_caches, w + has_last, to);
                   else
                     std::memset(to, 0, piece.size() * size);
                 });
  if (past_caches) fence_bypassing_stores();
}

ADASUM_INLINE void windows::mix(kernels use, const slice& window, const void* const* vectors, std::size_t n,
                                const double* weights, std::size_t bytes, void* out) {
  if (n <= 2) return mix_pair(*use.pair, window, vectors, n, weights, bytes, out);
  const std::size_t size = use.pair->element_bytes;
  const bool from_memory = exceeds_cache(n * window.range.size() * size);
  const bool past_caches = goes_past_caches(vectors, n, bytes, out);
  mix_pieces(use.pair->mix_short, window, vectors, n, weights, size, size, out,
             [&](const void* const* at, std::size_t count, const double* w, std::size_t length, void* to) {
               // Two that are left of more may cancel, which nobody has looked at.
               if (count == 1)
                 use.pair->mix_one(at, length, from_memory, past_caches, w, to);
               else
                 use.list->mix(at, count, length, from_memory, w, to);
             });
  if (past_caches) fence_bypassing_stores();
}

ADASUM_INLINE void windows::mix_in_double(const double_mixing& use, const slice& window, const void* const* vectors,
                                          std::size_t n, const double* weights, void* out) {
  const bool from_memory = exceeds_cache(n * window.range.size() * use.from_bytes);
  mix_pieces(use.of_short, window, vectors, n, weights, use.from_bytes, use.to_bytes, out,
             [&](const void* const* at, std::size_t count, const double* w, std::size_t length, void* to) {
               use.kernel(at, count, length, from_memory, w, to);
             });
}

}  // namespace adasum::detail::serial
#endif
