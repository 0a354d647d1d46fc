// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <smpi/smpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/core/gram.hpp>
#include <adasum/core/scalar.hpp>
#include <adasum/core/segments.hpp>

/// Measured kernel speeds, and an execution space that charges them to the simulated clock in place of computing.
namespace scale {

/// What adasum_scale_kernel_speeds printed. Between its figures, and beyond them, along straight lines of the
/// logarithms.
class kernel_speeds {
 public:
  kernel_speeds() = default;  ///< arithmetic is free
  /// @throws std::runtime_error if the file cannot be read
  explicit kernel_speeds(const std::string& path) {
    std::FILE* const file = std::fopen(path.c_str(), "r");
    if (!file) throw std::runtime_error("cannot read " + path);
    char kernel[16];
    double vectors = 0, bytes = 0, nanoseconds = 0;
    while (std::fscanf(file, "%15s %lf %lf %lf", kernel, &vectors, &bytes, &nanoseconds) == 4)
      table_[kernel][std::log2(vectors)].emplace_back(std::log2(std::max(bytes, 1.0)), std::log2(nanoseconds * 1e-9));
    std::fclose(file);
  }

  /// Seconds for one element of a slice of so many float vectors of so many bytes together; 0 without a file.
  double per_element(const char* kernel, std::size_t vectors, double bytes) const {
    const auto of = table_.find(kernel);
    if (of == table_.end()) return 0;
    std::vector<point> by_vectors;
    for (const auto& [count, by_bytes] : of->second)
      by_vectors.emplace_back(count, on_line(by_bytes, std::log2(std::max(bytes, 1.0)), false));
    return std::exp2(on_line(by_vectors, std::log2(static_cast<double>(vectors)), true));
  }

  double elements(const char* kernel, std::size_t vectors, std::size_t length) const {
    const auto count = static_cast<double>(length);
    return count * per_element(kernel, vectors, count * sizeof(float) * static_cast<double>(vectors));
  }

 private:
  using point = std::pair<double, double>;

  static double on_line(const std::vector<point>& points, double x, bool extend) {
    if (points.size() == 1) return points.front().second;
    auto right = std::ranges::lower_bound(points, x, {}, &point::first);
    right = std::clamp(right, points.begin() + 1, points.end() - 1);
    const auto left = right - 1;
    if (!extend) x = std::clamp(x, left->first, right->first);
    return left->second + (right->second - left->second) * (x - left->first) / (right->first - left->first);
  }

  std::map<std::string, std::map<double, std::vector<point>>, std::less<>> table_;
};

/// Lets the simulated clock of this rank go on.
inline void charge(double seconds) {
  if (seconds > 0) smpi_execute_benched(seconds);
}

/// An execution space for simulations of communication: computes nothing, takes the measured time. The gradients are
/// taken to be orthonormal, so that every rule finds sensible inner products. All ranks' vectors lie in one room that
/// nobody looks at: 1,024 vectors of 100 MB need 100 MB.
class modelled_space {
 public:
  static constexpr std::string_view name = "modelled";

  modelled_space(const kernel_speeds& speeds, std::span<std::byte> room) : speeds_(&speeds), room_(room) {}
  friend bool operator==(const modelled_space& a, const modelled_space& b) { return a.speeds_ == b.speeds_; }

  /// @throws std::length_error if the room is too small
  template <adasum::scalar T>
  auto allocate(std::size_t count) const {
    struct buffer {
      T* elements;
      T* data() const { return elements; }
    };
    if (count * sizeof(T) > room_.size()) throw std::length_error("the room for vectors is too small");
    return buffer{reinterpret_cast<T*>(room_.data())};
  }

  /// Over all ranks that the sum is taken over, the slices of a vector add up to its square, 1.
  template <adasum::scalar T>
  void measure(const adasum::slice& window, std::span<const T* const> vectors, double* gram) const {
    const auto n = vectors.size(), packed = adasum::packed_size(n);
    const auto whole = static_cast<double>(std::max<std::size_t>(window.segments.all().size(), 1));
    std::fill_n(gram, packed * window.segments.size(), 0.0);
    for (std::size_t k = 0; k < window.segments.size(); ++k)
      for (std::size_t i = 0; i < n; ++i)
        gram[k * packed + adasum::packed_index(i, i)] = static_cast<double>(window.local(k).size()) / whole;
    charge(speeds_->elements("measure", n, window.range.size()));
  }

  /// The weights of each segment have been computed just before.
  template <adasum::scalar T>
  void mix(const adasum::slice& window, std::span<const T* const> vectors, const double*, T*) const {
    const auto segments = static_cast<double>(window.segments.size());
    charge(segments * speeds_->per_element("weigh", vectors.size(), 0));
    charge(speeds_->elements("mix", vectors.size(), window.range.size()));
  }

  /// Elements that are sent in one message with records.
  template <adasum::scalar T>
  void copy(const T*, T*, std::size_t count) const {
    charge(speeds_->elements("mix", 1, count));
  }
  void fence() const {}

 private:
  const kernel_speeds* speeds_;
  std::span<std::byte> room_;
};

}  // namespace scale
