// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The adaptive sum of two gradients, first as one segment and then layer by layer.
#include <adasum/adasum.hpp>

#include <array>
#include <cmath>
#include <iostream>

int main() {
  const adasum::serial_space exec;
  const std::array a{4.0f, 5.0f, 6.0f, 7.0f};
  const std::array b{8.0f, 9.0f, 10.0f, 11.0f};
  std::array<float, 4> out;
  bool as_expected = true;
  const auto check = [&](const char* what, const std::array<double, 4>& expected) {
    std::cout << what << ':';
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::cout << ' ' << out[i];
      as_expected &= std::abs(out[i] - expected[i]) < 1e-4;
    }
    std::cout << '\n';
  };

  adasum::adasum_pair(exec, a, b, out);
  check("nearly parallel, so close to the mean  ", {6.2643, 7.1228, 7.9812, 8.8397});

  adasum::adasum_pair(exec, std::array{1.0f, 0.0f, 6.0f, 2.0f}, std::array{0.0f, 3.0f, 3.0f, 1.0f}, out,
                      adasum::segments{2, 2});
  check("two layers: orthogonal, and parallel   ", {1, 3, 4.5, 1.5});  // their sum, and their mean
  return as_expected ? 0 : 1;
}
