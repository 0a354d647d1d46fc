// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <string>
#include <utility>

int main() {
  std::string text = "moved from";
  const std::string other = std::move(text);
  return static_cast<int>(text.size() + other.size());
}
