// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rules.hpp"

#include <adasum/adasum.hpp>
#include <stdexcept>
#include <vector>

#ifdef TRAIN_MNIST_EIGEN
#include <adasum/rules/eigen/aligned_mtl.hpp>
#include <adasum/rules/eigen/imtl_g.hpp>
#include <adasum/rules/eigen/min_norm.hpp>
#endif

namespace {

std::vector<adasum::rules::any_rule> all_rules() {
  namespace rules = adasum::rules;
  constexpr auto mean_norm = rules::adacons::scaling::mean_norm;
  return {
      rules::adasum{},
      rules::sum{},
      rules::mean{},
      rules::adasum_linear{},
      rules::adacons{.momentum = 0.99, .scale = mean_norm},
      rules::unit_mean{},
      rules::multi_krum{.selected = 4},
#ifdef TRAIN_MNIST_EIGEN
      rules::min_norm{},
      rules::imtl_g{},
      rules::aligned_mtl{},
#endif
  };
}

}  // namespace

adasum::rules::any_rule rule_of(std::string_view name) {
  for (const auto& rule : all_rules())
    if (rule.name == name) return rule;
  throw std::invalid_argument("--rule " + std::string(name) + ": must be one of " + rule_names());
}

std::string rule_names() {
  std::string names;
  for (const auto& rule : all_rules()) names += (names.empty() ? "" : ", ") + std::string(rule.name);
  return names;
}
