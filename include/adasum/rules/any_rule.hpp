// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/gram.hpp"
#include "../detail/references/erased.hpp"
#include "../detail/references/rule_ref.hpp"

namespace adasum::rules {

/// A rule of any type, chosen at run time: it holds a rule, and calls and plans do what they do under that rule, to the last
/// bit. Pass it where a rule is taken; rules/named.hpp makes one from a text. With a schedule that cannot run the rule that it
/// holds, a call throws bad_input. A copy has a state of its own. What was moved from can only be assigned to.
///
///     adasum::rules::any_rule rule = robust ? adasum::rules::any_rule(adasum::rules::multi_krum{}) : adasum::rules::mean{};
///     adasum::combine(space, gradients, out, rule);
///
/// As a function, it turns inner products into the weights of the rule that it holds; those of a pairwise one along its tree,
/// where vectors that nearly cancel count as zero, since nobody can look at them.
class any_rule {
 public:
  /// Of whoever asks the type: some rule that it may hold compares distances. The library asks the rule that it does hold.
  static constexpr inner_products needs = inner_products::distances;

  /// Holds rules::adasum.
  any_rule();
  /// Holds this rule.
  template <class Rule>
    requires(!std::same_as<Rule, any_rule>) && rule<Rule>
  any_rule(Rule rule)
      : table_(&detail::table_of_rule<Rule, any_rule>),
        copy_([](const void* held) { return detail::own(Rule(*static_cast<const Rule*>(held))); }),
        held_(detail::own(std::move(rule))) {
    detail::refuse_members_of_rule<Rule>();
    name = reference().name();
  }
  /// With a state of its own.
  any_rule(const any_rule& other);
  any_rule(any_rule&&) noexcept = default;
  any_rule& operator=(const any_rule& other);
  any_rule& operator=(any_rule&&) noexcept = default;

  /// The rule that it holds, with its state, if that is of this type; null if it is of another.
  template <rule Rule>
  const Rule* target() const {
    return table_ == &detail::table_of_rule<Rule, any_rule> ? static_cast<const Rule*>(held_.get()) : nullptr;
  }

  bool whole_model() const;
  int degree() const;
  std::vector<double> parameters() const;

  void operator()(gram_view gram, std::span<double> weights, std::size_t segment);

  std::string_view name;      ///< of the rule that it holds
  std::size_t fallbacks = 0;  ///< the rule's, once this one has been used as a function

  /// @cond internal
  // For detail/references/rule_ref.hpp.
  friend const detail::rule_table& table_for(const any_rule& rule) { return *rule.table_; }
  template <rule Rule>
  Rule& held() {
    return *static_cast<Rule*>(held_.get());
  }
  /// @endcond

 private:
  detail::rule_ref reference() const;

  const detail::rule_table* table_;
  detail::owned_object (*copy_)(const void* held);
  detail::owned_object held_;
};

}  // namespace adasum::rules

/// @cond internal
template <>
inline constexpr bool adasum::detail::is_chosen_at_run_time<adasum::rules::any_rule> = true;
/// @endcond

#if ADASUM_DEFINITIONS
#include "adasum.hpp"

namespace adasum::rules {

ADASUM_INLINE any_rule::any_rule() : any_rule(adasum{}) {}
ADASUM_INLINE any_rule::any_rule(const any_rule& other)
    : fallbacks(other.fallbacks), table_(other.table_), copy_(other.copy_), held_(copy_(other.held_.get())) {
  name = reference().name();
}
ADASUM_INLINE any_rule& any_rule::operator=(const any_rule& other) {
  *this = any_rule(other);
  return *this;
}

ADASUM_INLINE bool any_rule::whole_model() const { return reference().weighs_whole_model(); }
ADASUM_INLINE int any_rule::degree() const { return reference().degree(); }
ADASUM_INLINE std::vector<double> any_rule::parameters() const { return reference().parameters(); }

ADASUM_INLINE void any_rule::operator()(gram_view gram, std::span<double> weights, std::size_t segment) {
  detail::weigh_by_products(reference(), gram, weights, segment);
  fallbacks = reference().fallbacks();
}

ADASUM_INLINE detail::rule_ref any_rule::reference() const { return {*table_, const_cast<any_rule*>(this)}; }

}  // namespace adasum::rules
#endif
