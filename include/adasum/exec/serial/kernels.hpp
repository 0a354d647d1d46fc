// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/wire_losses.hpp"
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
  using kernel = void(const void* from, void* to, std::size_t count, wire_losses*);
  kernel *to_float, *from_float;
  kernel* from_float_counting;  ///< adds what is lost; the others take null
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
  const list_kernels* list;  ///< null if there are never other than two vectors
};

/// What mixes vectors in double, or to or from doubles.
struct double_mixing {
  mix_kernel* kernel;
  mix_short_kernel* of_short;        ///< null if there is none
  std::size_t from_bytes, to_bytes;  ///< of an element
};

/// How the kernels go over windows: segment by segment, and runs of short segments at once. (A template, so that a program
/// compiles only what it uses.)
template <class = void>
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
extern template struct windows<>;
#endif

}  // namespace adasum::detail::serial

#if !defined(ADASUM_COMPILED)
#include "tables.hpp"
#include "windows.hpp"
#endif
