// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/space_members.hpp"
#include "instruction_set.hpp"
#include "kernels.hpp"

namespace adasum {
namespace detail::serial {

/// Uninitialised elements on whole cache lines.
template <class T>
class buffer {
 public:
  explicit buffer(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    elements_ = static_cast<T*>(::operator new(count * sizeof(T), cache_line));
  }
  buffer(buffer&& other) noexcept : elements_(std::exchange(other.elements_, nullptr)) {}
  buffer& operator=(buffer&& other) noexcept {
    std::swap(elements_, other.elements_);
    return *this;
  }
  ~buffer() { ::operator delete(static_cast<void*>(elements_), cache_line); }
  T* data() const { return elements_; }

 private:
  static constexpr std::align_val_t cache_line{64};
  T* elements_;
};

template <class T>
const void* const* untyped(std::span<const T* const> vectors) {
  return reinterpret_cast<const void* const*>(vectors.data());
}

template <scalar T>
inline constexpr bool is_float = format_of<T> == number_format::binary32;
template <scalar T>
inline constexpr bool is_double = format_of<T> == number_format::binary64;

/// Whether serial_space copies elements of one type to another.
template <scalar From, scalar To>
inline constexpr bool can_copy = std::same_as<From, To> || (sizeof(From) == 2 && is_float<To>) ||
                                 (is_float<From> && sizeof(To) == 2);

}  // namespace detail::serial

/// The execution space of the calling thread: every call computes before it returns. Uses the best vector instructions
/// that the processor has, chosen at run time. Has no state, so one object may serve any number of threads.
/// Fulfils the contract of the concept execution_space for every scalar.
class serial_space {
 public:
  static constexpr std::string_view name = "serial";

  /// Uses default_instruction_set(): the best that this processor has, unless the environment variable ADASUM_ISA limits it.
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

  /// Uninitialised memory on whole cache lines, owned by what is returned.
  template <scalar T>
  auto allocate(std::size_t count) const {
    return detail::serial::buffer<T>(count);
  }

  /// @param bytes  of all vectors together, if the window is a part of a larger one, else 0: those that most likely come from
  ///               memory are fetched ahead
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram, std::size_t bytes = 0) const {
    windows::measure(kernels<T>(), window, detail::serial::untyped(vectors), vectors.size(), false,
                     bytes != 0 ? bytes : bytes_of<T>(window, vectors.size()), gram);
  }
  /// Every product and sum in double, also those of one or two vectors of narrower elements.
  template <scalar T>
  void measure_in_double(const slice& window, std::span<const T* const> vectors, double* gram) const {
    windows::measure(kernels<T>(), window, detail::serial::untyped(vectors), vectors.size(), true,
                     bytes_of<T>(window, vectors.size()), gram);
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
    windows::mix(kernels<T>(), window, detail::serial::untyped(vectors), vectors.size(), weights, bytes, out);
  }
  /// As mix, with products and sums in double: of vectors whose sum is much shorter than they are; or to or from doubles, of
  /// sums that are combined further.
  template <scalar From, scalar To>
    requires(detail::serial::is_double<From> || detail::serial::is_double<To> || format_of<From> == format_of<To>)
  void mix_in_double(const slice& window, std::span<const From* const> vectors, const double* weights, To* out) const {
    windows::mix_in_double(double_mixing<From, To>(), window, detail::serial::untyped(vectors), vectors.size(), weights,
                           out);
  }

  /// Of all vectors together in the window.
  template <scalar T>
  static constexpr std::size_t bytes_of(const slice& window, std::size_t n) {
    return n * window.range.size() * sizeof(T);
  }

  /// Of one element type, or between float and a 16-bit type, rounded to nearest even.
  template <scalar From, scalar To>
    requires(detail::serial::can_copy<From, To>)
  void copy(const From* from, To* to, std::size_t count) const {
    if constexpr (std::same_as<From, To>) {
      if (count != 0) std::memcpy(static_cast<void*>(to), from, count * sizeof(To));
    } else {
      conversion<From, To>()(from, to, count);
    }
  }

  void fence() const {}

  /// @cond internal
  friend std::string_view rounding_of(detail::own_type, const serial_space& space) {
    return to_string(space.instructions_);
  }
  /// What measures and mixes vectors of T; and two of them.
  template <scalar T>
  detail::serial::kernels kernels() const {
    return {&pairs<T>(), &tables<T>::lists[place()]};
  }
  template <scalar T>
  const detail::serial::pair_kernels& pairs() const {
    return tables<T>::pairs[place()];
  }
  /// What mixes them in double.
  template <scalar From, scalar To>
  detail::serial::double_mixing double_mixing() const {
    if constexpr (format_of<From> == format_of<To>)
      return {kernels<From>().list->mix, kernels<From>().pair->mix_short, sizeof(From), sizeof(To)};
    else if constexpr (detail::serial::is_double<To>)
      return {tables<From>::sums[place()].to_double, nullptr, sizeof(From), sizeof(To)};
    else
      return {tables<To>::sums[place()].from_double, nullptr, sizeof(From), sizeof(To)};
  }
  /// What copies elements of other types; null if they are of one type.
  template <scalar From, scalar To>
  detail::serial::conversion_kernels::kernel* conversion() const {
    if constexpr (std::same_as<From, To>)
      return nullptr;
    else if constexpr (sizeof(From) == 2)
      return tables<From>::conversions[place()].to_float;
    else
      return tables<To>::conversions[place()].from_float;
  }
  /// @endcond

 private:
  using windows = detail::serial::windows;
  template <scalar T>
  using tables = detail::serial::kernel_tables<format_of<T>>;
  std::size_t place() const { return detail::serial::place_of(instructions_); }

  instruction_set instructions_ = default_instruction_set();
};

/// @cond internal
/// What has been measured is still in the second-level cache when it is mixed.
template <>
inline constexpr std::size_t detail::own_round_bytes<serial_space> = std::size_t{256} << 10;

/// The same results, by the kernels for pairs: a program that adds only pairs holds half as many.
template <>
struct detail::own_pairs<serial_space> {
  template <scalar T>
  static void measure(const serial_space& space, const slice& window, std::span<const T* const> vectors, double* gram,
                      std::size_t bytes) {
    serial::windows::measure_pair(space.pairs<T>(), window, serial::untyped(vectors), vectors.size(), bytes, gram);
  }
  template <scalar T>
  static void mix(const serial_space& space, const slice& window, std::span<const T* const> vectors,
                  const double* weights, T* out, std::size_t bytes) {
    serial::windows::mix_pair(space.pairs<T>(), window, serial::untyped(vectors), vectors.size(), weights, bytes, out);
  }
};
/// @endcond

}  // namespace adasum
