// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/optional_members.hpp"
#include "../core/segments.hpp"
#include "../detail/references/packed_element.hpp"
#include "measure_check.hpp"
#include "mix_check.hpp"
#include "space_samples.hpp"
#include "taken_members.hpp"

namespace adasum {
namespace detail {

/// The part of check_execution_space that looks at memory and copies.
template <scalar T, class Space>
class memory_check {
 public:
  explicit memory_check(const Space& space) : space_(space) {}

  void run() const {
    if (std::string_view(space_.name).empty()) refuse("its name is empty");
    check_memory();
    for (const std::size_t count : {0u, 1u, 7u, 1000u}) check_copy<T, T>(sample<T>(count));
    if constexpr (packs<Space, T>) {
      check_conversions<packed_bfloat16>();
      check_conversions<packed_binary16>();
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { refuse_space(space_.name, what); }

  void check_memory() const {
    auto none = space_.template allocate<T>(0);
    none = space_.template allocate<T>(100);
    auto other = space_.template allocate<T>(100);
    T* const address = other.data();
    if (none.data() == address) refuse("allocate: two pieces of memory are the same");
    auto moved = std::move(other);
    if (moved.data() != address) refuse("allocate: the elements are elsewhere once the memory was moved");
    if (reinterpret_cast<std::uintptr_t>(address) % alignof(T) != 0) refuse("allocate: memory is not aligned");
    if constexpr (requires { space_.can_reach(static_cast<const T*>(address)); })
      if (!space_.can_reach(static_cast<const T*>(address))) refuse("can_reach: denied for memory of the space");
  }

  template <scalar From>
  static std::vector<From> sample(std::size_t count) {
    return sample_vectors<From>(1, count, 13).front();
  }
  template <scalar From, scalar To>
  void check_copy(const std::vector<From>& values) const {
    const auto count = values.size();
    space_array<From, Space> from(space_, values);
    const std::vector<To> before(count + 1, from_double<To>(7));
    space_array<To, Space> to(space_, before);
    space_.copy(static_cast<const From*>(from.at(0)), to.at(0), count);
    const auto got = to.read();
    for (std::size_t i = 0; i < count; ++i) {
      const To expected = from_double<To>(to_double(values[i]));
      if (std::memcmp(&got[i], &expected, sizeof(To)) != 0)
        refuse(joined({"copy: ", to_double(values[i]), " becomes ", to_double(got[i]), " (from ",
                       to_string(format_of<From>), " to ", to_string(format_of<To>), ")"}));
    }
    if (to_double(got[count]) != 7) refuse("copy: it writes past the end");
  }

  template <scalar U>
  void check_conversions() const {
    check_copy<T, U>(sample<T>(1000));
    check_copy<U, T>(sample<U>(1000));
    // In turn: what becomes infinite, what becomes zero, and neither.
    const bool half = format_of<U> == number_format::binary16;
    const float ends[] = {half ? 65520.0f : std::numeric_limits<float>::max(),
                          half ? -0x1p-25f : -std::numeric_limits<float>::denorm_min(),
                          half ? -65519.0f : 3e38f,
                          half ? 0x1p-24f : 1e-38f,
                          0.0f,
                          -std::numeric_limits<float>::infinity()};
    std::vector<T> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = ends[i % std::size(ends)];
    check_copy<T, U>(values);
  }

  const Space& space_;
};

}  // namespace detail

/// Checks what a space does with elements of T:
///
///   * measure: against long double, in windows that begin and end anywhere; long sums do not drift; squares do not
///     underflow to zero; Inf and NaN show; the same bits wherever the vectors lie, and by copies of the space;
///   * mix: against long double, in the same windows; nothing else is written; in place; vectors of weight 0 are not
///     read; weights may be larger or smaller than any T; they are read before it returns; the same bits wherever the
///     vectors lie;
///   * measure_in_double and mix_in_double, where the space offers them: the same, with the accuracy of doubles; where
///     it combines vectors of T in groups, also those for doubles, in which the groups' sums are kept;
///   * allocate, and copy, also between float and 16 bits where the space offers that, to the ends of their range; and the
///     other optional members.
///
/// Does not see whether copies of the space may be used by several threads at the same time.
/// @return the names of the optional members that the library takes
/// @throws bad_input  saying what is wrong first
template <scalar T, execution_space<T> Space>
std::vector<std::string> check_execution_space(const Space& space) {
  detail::memory_check<T, Space>(space).run();
  detail::measure_check<T, Space>(space).run();
  detail::mix_check<Space, T>(space).run();
  if constexpr (detail::measures_in_double<Space, T>) detail::measure_check<T, Space, true>(space).run();
  if constexpr (detail::combines_in_groups<Space, T>) detail::mix_check<Space, T, double, true>(space).run();
  if constexpr (!std::is_same_v<T, double>) {
    if constexpr (detail::mixes_in_double<Space, T>) detail::mix_check<Space, T, T, true>(space).run();
    if constexpr (detail::combines_in_groups<Space, T>) {
      detail::measure_check<double, Space, true>(space).run();
      detail::mix_check<Space, double, T, true>(space).run();
    }
  }
  return detail::taken_members_of_space<T, Space>();
}

}  // namespace adasum
