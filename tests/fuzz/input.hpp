// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What fuzz targets share.
namespace adasum::fuzz {

/// The bytes of a fuzzer's input, taken one after another. When there are no more, zeros.
class input {
 public:
  input(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  template <class Number>
  Number number() {
    Number value{};
    const auto count = std::min(sizeof value, left_.size());
    if (count > 0) std::memcpy(&value, left_.data(), count);
    left_ = left_.subspan(count);
    return value;
  }
  /// From 0 to `most`.
  std::size_t up_to(std::size_t most) { return number<std::uint8_t>() % (most + 1); }
  bool flag() { return up_to(1) == 1; }
  std::string text() {
    const std::size_t wanted = number<std::uint8_t>();  // first: it takes a byte of what is left
    const auto count = std::min(wanted, left_.size());
    std::string found(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(count));
    left_ = left_.subspan(count);
    return found;
  }
  std::string_view rest() const { return {reinterpret_cast<const char*>(left_.data()), left_.size()}; }

 private:
  std::span<const std::uint8_t> left_;
};

/// A property that does not hold ends the program, as fuzzers expect.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

}  // namespace adasum::fuzz
