// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Eight gradients of one process, combined along the tree; and the same gradients under another rule.
#include <adasum/adasum.hpp>

#include <cmath>
#include <iostream>
#include <vector>

int main() {
  constexpr std::size_t workers = 8;
  const adasum::serial_space exec;
  const adasum::segments layers{workers, 3};

  // In the first layer every worker moves along an axis of its own; in the second they all agree.
  std::vector<std::vector<float>> gradients(workers, std::vector<float>(layers.total()));
  for (std::size_t w = 0; w < workers; ++w) {
    gradients[w][w] = 1;
    for (std::size_t i = 0; i < layers.length(1); ++i) gradients[w][layers.offset(1) + i] = 2;
  }

  std::vector<float> adaptive(layers.total()), mean(layers.total());
  const adasum::report found = adasum::adasum_tree(exec, gradients, adaptive, layers);
  adasum::combine(exec, gradients, mean, adasum::rules::mean{}, layers);

  std::cout << "            layer 0   layer 1\n"
            << "adasum      " << adaptive.front() << "         " << adaptive.back() << '\n'
            << "mean        " << mean.front() << "     " << mean.back() << '\n'
            << "orthogonal  " << found.orthogonality(0) << "         " << found.orthogonality(1) << '\n';

  const auto near = [](double x, double y) { return std::abs(x - y) < 1e-6; };
  return near(adaptive.front(), 1) && near(adaptive.back(), 2) && near(mean.front(), 1.0 / workers) &&
                 near(found.orthogonality(0), 1) && near(found.orthogonality(1), 1.0 / workers)
             ? 0
             : 1;
}
