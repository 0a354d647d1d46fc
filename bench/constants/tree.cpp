// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trees of 4 to 32 vectors: see constants.py.

#include <adasum/exec/serial.hpp>
#include <adasum/tree.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "timing.hpp"

int main() {
  using namespace constants_bench;
  const adasum::serial_space exec;
  for (const std::size_t count : {4u, 8u, 16u, 32u})
    for (const std::size_t length : {1u << 10, 16u << 10, 128u << 10, 1u << 20, 4u << 20}) {
      if (count * length > std::size_t{32} << 20) continue;
      std::vector<std::vector<float>> gradients;
      for (std::size_t i = 0; i < count; ++i) gradients.push_back(noise(length, static_cast<std::uint32_t>(i + 1)));
      std::vector<float> out(length);
      print(std::to_string(count).c_str(), length, nanoseconds_of([&] { adasum::adasum_tree(exec, gradients, out); }));
    }
}
