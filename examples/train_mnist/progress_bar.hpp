// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <iostream>
#include <string>
#include <utility>

/// A bar on the current line of standard output; finish() replaces it with a line that stays.
class progress_bar {
 public:
  progress_bar(std::string title, bool visible) : title_(std::move(title)), visible_(visible) {}

  /// @param fraction  done so far, 0 … 1
  void show(double fraction) {
    const auto filled = static_cast<std::size_t>(fraction * width);
    if (!visible_ || filled == shown_) return;
    shown_ = filled;
    std::string bar;
    for (std::size_t i = 0; i < width; ++i) bar += i < filled ? "█" : "░";
    std::cout << '\r' << title_ << "  " << bar << std::flush;
  }

  void finish(const std::string& result) {
    if (visible_) std::cout << '\r' << std::string(title_.size() + 2 + width, ' ') << '\r';
    std::cout << title_ << "  " << result << std::endl;
  }

 private:
  static constexpr std::size_t width = 40;
  std::string title_;
  bool visible_;
  std::size_t shown_ = width + 1;
};
