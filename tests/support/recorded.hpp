// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

/// What members of recording types were asked, in order: for tests of the tables by which the engine calls them.
namespace adasum::test {

/// Memory whose addresses are told apart by their distance from its beginning.
inline std::array<double, 64> arena{};

/// What was called since the last time that somebody asked.
inline std::vector<std::string> recorded;

template <class Value>
std::string as_word(const Value& value) {
  if constexpr (std::is_pointer_v<Value>) {
    return "@" + std::to_string(reinterpret_cast<const std::byte*>(value) - reinterpret_cast<const std::byte*>(&arena));
  } else {
    std::ostringstream text;
    text << value;
    return text.str();
  }
}

template <class... Values>
void record(const std::string& member, const Values&... values) {
  std::string text = member;
  ((text += " " + as_word(values)), ...);
  recorded.push_back(std::move(text));
}

inline std::string last_recorded() {
  std::string all;
  for (const auto& one : std::exchange(recorded, {})) all += (all.empty() ? "" : "; ") + one;
  return all;
}

/// The address at so many bytes of the arena.
inline std::byte* at(std::size_t bytes) { return reinterpret_cast<std::byte*>(&arena) + bytes; }

}  // namespace adasum::test
