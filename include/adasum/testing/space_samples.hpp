// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/scalar.hpp"
#include "../core/scalar_value.hpp"
#include "../core/segments.hpp"

/// What the checks of measure and mix have in common: vectors of the host's, and the same in memory of a space.
namespace adasum::detail {

/// The smallest positive number of T.
template <scalar T>
constexpr double smallest_of() {
  if constexpr (sizeof(T) == 2)
    return decode<format_of<T>>(1);
  else if constexpr (sizeof(T) == sizeof(float))
    return std::numeric_limits<float>::denorm_min();
  else
    return std::numeric_limits<double>::denorm_min();
}

[[noreturn]] inline void refuse_space(std::string_view name, const std::string& what) {
  throw bad_input({"adasum::check_execution_space: ", name, ": ", what});
}

/// Elements in memory of a space, written and read by the host.
template <scalar T, class Space>
class space_array {
 public:
  space_array(const Space& space, std::span<const T> elements)
      : space_(space), count_(elements.size()), memory_(space.template allocate<T>(elements.size())) {
    if (elements.empty()) return;
    if constexpr (device_space<Space>) {
      space.upload(elements.data(), at(0), elements.size_bytes());
      space.fence();
    } else {
      std::memcpy(static_cast<void*>(at(0)), elements.data(), elements.size_bytes());
    }
  }

  T* at(std::size_t i) { return memory_.data() + i; }

  std::vector<T> read() {
    std::vector<T> elements(count_, from_double<T>(0));
    space_.fence();
    if (count_ == 0) return elements;
    if constexpr (device_space<Space>) {
      space_.download(at(0), elements.data(), count_ * sizeof(T));
      space_.fence();
    } else {
      std::memcpy(static_cast<void*>(elements.data()), at(0), count_ * sizeof(T));
    }
    return elements;
  }

 private:
  const Space& space_;
  std::size_t count_;
  decltype(std::declval<const Space&>().template allocate<T>(0)) memory_;
};

template <scalar T>
using host_vectors = std::vector<std::vector<T>>;

/// n vectors of numbers between -1 and 1, the same on every machine.
template <scalar T>
host_vectors<T> sample_vectors(std::size_t n, std::size_t length, std::uint32_t seed = 1) {
  std::mt19937 bits(seed);
  host_vectors<T> vectors(n, std::vector<T>(length, from_double<T>(0)));
  for (auto& vector : vectors)
    for (T& x : vector) x = from_double<T>(static_cast<double>(bits()) / 0x1p31 - 1);
  return vectors;
}

/// Vectors in memory of a space, of which a kernel sees the elements from the origin of a window on.
template <scalar T, class Space>
class placed_vectors {
 public:
  /// @param padding  vector i begins behind padding + i·step elements that are NaN
  placed_vectors(const Space& space, const host_vectors<T>& vectors, const slice& window, std::size_t padding = 0,
                 std::size_t step = 0) {
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      const auto before = padding + i * step;
      std::vector<T> elements(before, from_double<T>(std::numeric_limits<double>::quiet_NaN()));
      elements.insert(elements.end(), vectors[i].begin() + static_cast<std::ptrdiff_t>(window.origin),
                      vectors[i].begin() + static_cast<std::ptrdiff_t>(window.range.end));
      arrays_.push_back(space_array<T, Space>(space, elements));
      at_.push_back(arrays_.back().at(before));
    }
  }
  std::span<const T* const> all() const { return at_; }
  /// Member i, to be written.
  T* at(std::size_t i) { return const_cast<T*>(at_[i]); }
  space_array<T, Space>& array(std::size_t i) { return arrays_[i]; }

 private:
  std::vector<space_array<T, Space>> arrays_;
  std::vector<const T*> at_;
};

/// Windows to try: the whole, and some that begin and end inside segments, have elements before them or are empty; and
/// some of the segments alone, as they lie in the whole vector.
class sample_windows {
 public:
  std::vector<slice> all() const {
    std::vector<slice> windows{whole(cut_)};
    for (const auto& [range, origin] : {std::pair{index_range{20, 401}, std::size_t{20}},
                                        {index_range{20, 401}, 7},
                                        {index_range{0, 61}, 0},
                                        {index_range{45, 60}, 45},
                                        {index_range{131, 132}, 100},
                                        {index_range{50, 50}, 50}})
      windows.push_back({cut_, range, origin});
    windows.push_back(whole(cut_).part(2, 3));
    windows.push_back(windows[1].part(3, 4));
    return windows;
  }
  std::size_t length() const { return cut_.total(); }

  static std::string describe(const slice& window) {
    return joined({"elements ", window.range.begin, " to ", window.range.end, " of ",
                   counted(window.segments.size(), "segment"), ", counted from ", window.origin});
  }

 private:
  segments cut_{std::vector{40, 0, 21, 70, 1, 300, 0}};  // g++ 12 sees a dangling list in {40, …} here
};

}  // namespace adasum::detail
