// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/rules/eigen/aligned_mtl.hpp>
#include <adasum/rules/eigen/alpha_fair.hpp>
#include <adasum/rules/eigen/cagrad.hpp>
#include <adasum/rules/eigen/conflict_free.hpp>
#include <adasum/rules/eigen/dualproj.hpp>
#include <adasum/rules/eigen/fairgrad.hpp>
#include <adasum/rules/eigen/imtl_g.hpp>
#include <adasum/rules/eigen/min_norm.hpp>
#include <adasum/rules/eigen/nash_mtl.hpp>
#include <adasum/rules/eigen/upgrad.hpp>

/// The rules that need Eigen, for tools that look at templates only where they are used.
int main() {
  const std::vector<std::vector<float>> gradients{{1, 2}, {3, 4}};
  std::vector<float> out(2);
  const auto combine = [&](auto... rules) { (adasum::combine(adasum::serial_space{}, gradients, out, rules), ...); };
  combine(adasum::rules::aligned_mtl{}, adasum::rules::cagrad{}, adasum::rules::conflict_free{},
          adasum::rules::dualproj{}, adasum::rules::fairgrad{}, adasum::rules::imtl_g{}, adasum::rules::min_norm{},
          adasum::rules::nash_mtl{}, adasum::rules::upgrad{});
  return out.front() > 0 ? 0 : 1;
}
