// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>

#include "blocks.hpp"
#include "convert.hpp"
#include "elements.hpp"
#include "instruction_set.hpp"
#include "kernels.hpp"
#include "measure.hpp"
#include "mix.hpp"
#include "short_segments.hpp"

/// What the tables of kernels.hpp hold.
namespace adasum::detail::serial {

template <class Result, class... Arguments>
using function = Result (*)(Arguments...);

/// Converts to the entry of a kernel that uses vectors of so many bytes.
template <class Kernel, std::size_t Bytes>
struct entry {
  template <class... Arguments>
  constexpr operator function<void, Arguments...>() const {
#if defined(__x86_64__)
    if constexpr (Bytes == 64) return &enter_avx512<Kernel, Arguments...>;
    if constexpr (Bytes == 32) return &enter_avx2<Kernel, Arguments...>;
#endif
    if constexpr (Bytes == 16) return &enter_baseline<Kernel, Arguments...>;
  }
};

template <scalar T, std::size_t Bytes>
constexpr pair_kernels pair_kernels_of() {
  pair_kernels made{.element_bytes = sizeof(T),
                    .block_length = pair_block_length(sizeof(compute_type<T>), Bytes),
                    .measure = entry<measure_few<2, T>, Bytes>{},
                    .mix_one = entry<mix_few<1, T>, Bytes>{},
                    .mix = entry<mix_few<2, T>, Bytes>{},
                    .measure_short = nullptr,
                    .mix_short = nullptr};
  if constexpr (std::is_same_v<T, float>) {
    made.measure_short = entry<measure_short_pairs, Bytes>{};
    made.mix_short = entry<mix_short, Bytes>{};
  }
  return made;
}

template <scalar T, std::size_t Bytes>
constexpr list_kernels list_kernels_of() {
  list_kernels made{.converts = measure_many<T>::converts,
                    .measure_one = entry<measure_few<1, T>, Bytes>{},
                    .measure = entry<measure_many<T>, Bytes>{},
                    .measure_short = nullptr,
                    .mix = entry<mix_many<T>, Bytes>{}};
  if constexpr (std::is_same_v<T, float>) made.measure_short = entry<measure_short, Bytes>{};
  return made;
}

template <scalar T, std::size_t Bytes>
constexpr sum_kernels sum_kernels_of() {
  return {entry<mix_many<T, double>, Bytes>{}, entry<mix_many<double, T>, Bytes>{}};
}

template <scalar T, std::size_t Bytes>
constexpr conversion_kernels conversion_kernels_of() {
  if constexpr (sizeof(T) != 2)
    return {};
  else
    return {entry<convert<T, float>, Bytes>{}, entry<convert<float, T>, Bytes>{}};
}

#if defined(__x86_64__)
#define ADASUM_OF_EVERY_SET(MAKE) \
  {MAKE<element<Format>, 16>(), MAKE<element<Format>, 32>(), MAKE<element<Format>, 64>()}
#else
#define ADASUM_OF_EVERY_SET(MAKE) {MAKE<element<Format>, 16>()}
#endif
template <number_format Format>
constinit const pair_kernels kernel_tables<Format>::pairs[] = ADASUM_OF_EVERY_SET(pair_kernels_of);
template <number_format Format>
constinit const list_kernels kernel_tables<Format>::lists[] = ADASUM_OF_EVERY_SET(list_kernels_of);
template <number_format Format>
constinit const sum_kernels kernel_tables<Format>::sums[] = ADASUM_OF_EVERY_SET(sum_kernels_of);
template <number_format Format>
constinit const conversion_kernels kernel_tables<Format>::conversions[] = ADASUM_OF_EVERY_SET(conversion_kernels_of);
#undef ADASUM_OF_EVERY_SET

}  // namespace adasum::detail::serial
