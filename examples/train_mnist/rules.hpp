// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/adasum.hpp>
#include <string>
#include <string_view>

#ifdef TRAIN_MNIST_EIGEN
#include <adasum/rules/eigen/aligned_mtl.hpp>
#include <adasum/rules/eigen/imtl_g.hpp>
#include <adasum/rules/eigen/min_norm.hpp>
#endif

/// visit(rule) for every rule that --rule may name, until it returns true. AdaCons is scaled back to the gradients'
/// mean norm, since the learning rate is the same for all; its control, unit_mean, takes steps of unit vectors as it
/// is.
template <class Visitor>
bool any_rule(Visitor&& visit) {
  namespace rules = adasum::rules;
  constexpr auto mean_norm = rules::adacons::scaling::mean_norm;
  return visit(rules::adasum{}) || visit(rules::sum{}) || visit(rules::mean{}) || visit(rules::adasum_linear{}) ||
         visit(rules::adacons{.momentum = 0.99, .scale = mean_norm}) || visit(rules::unit_mean{}) ||
         visit(rules::multi_krum{.selected = 4})
#ifdef TRAIN_MNIST_EIGEN
         || visit(rules::min_norm{}) || visit(rules::imtl_g{}) || visit(rules::aligned_mtl{})
#endif
      ;
}

/// "adasum, sum, mean, …"
inline std::string rule_names() {
  std::string names;
  any_rule([&](const auto& rule) {
    names += (names.empty() ? "" : ", ") + std::string(rule.name);
    return false;
  });
  return names;
}

inline bool is_rule(std::string_view name) {
  return any_rule([&](const auto& rule) { return name == rule.name; });
}
