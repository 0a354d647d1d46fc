// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "../../core/error.hpp"

/// Which vector instructions a kernel may use, chosen at run time: a program built without -march=native still gets
/// what its processor has.
namespace adasum {

namespace detail {
inline constexpr const char* instruction_set_variable = "ADASUM_ISA";
}

/// Ordered: each includes those before it. Values are stable: ranks compare them.
enum class instruction_set : unsigned char {
  baseline = 1,  ///< what the compiler was told to assume; vectors of 16 bytes
  avx2 = 2,      ///< x86-64-v3: 32 bytes, fused multiply-add, conversions of binary16
  avx512 = 3,    ///< x86-64-v4: 64 bytes
};

/// "baseline", "avx2" or "avx512".
constexpr std::string_view to_string(instruction_set set) {
  switch (set) {
    case instruction_set::baseline: return "baseline";
    case instruction_set::avx2: return "avx2";
    case instruction_set::avx512: return "avx512";
  }
  return "unknown";
}

/// The best set that this processor has.
inline instruction_set best_instruction_set() {
#if defined(__x86_64__)
  static const instruction_set best = [] {
    const auto has = [](auto... features) { return (features && ...); };
    if (has(__builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512bw"), __builtin_cpu_supports("avx512vl"),
            __builtin_cpu_supports("avx512dq")))
      return instruction_set::avx512;
    unsigned eax, ebx, features = 0, edx;  // clang 14 cannot ask for F16C by name
    const bool f16c = __get_cpuid(1, &eax, &ebx, &features, &edx) && (features & bit_F16C);
    if (has(__builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"), f16c)) return instruction_set::avx2;
    return instruction_set::baseline;
  }();
  return best;
#else
  return instruction_set::baseline;
#endif
}

/// What spaces of the CPU use unless they are told otherwise: the best set that this processor has, but none above the one that
/// the environment variable ADASUM_ISA names ("baseline", "avx2", "avx512"). With the same name on all of them, machines with
/// different processors that have that set give the same bits. Read once in a process.
/// @throws bad_input  the variable has another value, other than ""
instruction_set default_instruction_set();

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include <algorithm>

#include "../../core/environment.hpp"

namespace adasum {

ADASUM_INLINE instruction_set default_instruction_set() {
  static const auto chosen = [] {
    const auto text = detail::environment(detail::instruction_set_variable);
    if (text.empty()) return best_instruction_set();
    for (const auto set : {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512})
      if (text == to_string(set)) return std::min(set, best_instruction_set());
    throw bad_input({"adasum: the environment variable ", detail::instruction_set_variable, " is '", text,
                     "'; it can be baseline, avx2 or avx512"});
  }();
  return chosen;
}

}  // namespace adasum
#endif

namespace adasum::detail::serial {

// A kernel is a type with a static function template run<Bytes>(arguments…) that is always inlined. Each entry below
// compiles it for one instruction set.
#if defined(__x86_64__)
template <class Kernel, class... Arguments>
[[gnu::noinline, gnu::target("avx512f,avx512bw,avx512vl,avx512dq,fma")]] void enter_avx512(Arguments... arguments) {
  Kernel::template run<64>(arguments...);
}
template <class Kernel, class... Arguments>
[[gnu::noinline, gnu::target("avx2,fma,f16c")]] void enter_avx2(Arguments... arguments) {
  Kernel::template run<32>(arguments...);
}
#endif
template <class Kernel, class... Arguments>
[[gnu::noinline]] void enter_baseline(Arguments... arguments) {
  Kernel::template run<16>(arguments...);
}

/// Runs one kernel from within another of the same vectors, but not inlined.
template <std::size_t Bytes, class Kernel, class... Arguments>
[[gnu::always_inline]] inline void run_apart(Arguments... arguments) {
#if defined(__x86_64__)
  if constexpr (Bytes == 64) return enter_avx512<Kernel>(arguments...);
  if constexpr (Bytes == 32) return enter_avx2<Kernel>(arguments...);
#endif
  if constexpr (Bytes == 16) enter_baseline<Kernel>(arguments...);
}

}  // namespace adasum::detail::serial
