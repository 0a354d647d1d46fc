// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/gram.hpp"
#include "../core/optional_members.hpp"

namespace adasum::rules {

/// A rule of n vectors that is chosen at run time: it holds any rule that asks for the same as the parameters say, and does
/// what that rule does, to the last bit. It costs a virtual call. What is compiled for such a rule serves all that it may
/// hold; the template parameters remain, since the library compiles other code for each of them (core/concepts.hpp says
/// what they mean). A copy has a state of its own.
template <inner_products Needs, bool LeavesOutNonfinite>
class any_gram_rule {
 public:
  static constexpr std::string_view name = "any_gram_rule";
  static constexpr inner_products needs = Needs;
  static constexpr bool leaves_out_nonfinite = LeavesOutNonfinite;

  /// Whether it can hold a rule of this type.
  template <gram_rule Rule>
  static constexpr bool holds =
      !pairwise_rule<Rule> && needs_of<Rule> == Needs && ::adasum::leaves_out_nonfinite<Rule> == LeavesOutNonfinite;

  /// Holds this rule.
  template <class Rule>
    requires(!std::same_as<Rule, any_gram_rule>) && gram_rule<Rule> && holds<Rule>
  explicit any_gram_rule(Rule rule) : rule_(std::make_unique<holder<Rule>>(std::move(rule))) {}
  /// With a state of its own.
  any_gram_rule(const any_gram_rule& other) : fallbacks(other.fallbacks), rule_(other.rule_->copy()) {}
  any_gram_rule(any_gram_rule&&) noexcept = default;
  any_gram_rule& operator=(const any_gram_rule& other) {
    *this = any_gram_rule(other);
    return *this;
  }
  any_gram_rule& operator=(any_gram_rule&&) noexcept = default;

  std::string_view chosen_name() const { return rule_->name(); }
  bool whole_model() const { return rule_->whole_model(); }
  int degree() const { return rule_->degree(); }
  std::vector<double> parameters() const { return rule_->parameters(); }

  void operator()(gram_view gram, std::span<double> weights, std::size_t segment) {
    rule_->weigh(gram, weights, segment);
    fallbacks = rule_->fallbacks();
  }

  std::size_t fallbacks = 0;  ///< the rule's

 private:
  struct methods {
    virtual ~methods() = default;
    virtual std::unique_ptr<methods> copy() const = 0;
    virtual std::string_view name() const = 0;
    virtual bool whole_model() const = 0;
    virtual int degree() const = 0;
    virtual std::vector<double> parameters() const = 0;
    virtual std::size_t fallbacks() const = 0;
    virtual void weigh(gram_view gram, std::span<double> weights, std::size_t segment) = 0;
  };

  template <class Rule>
  struct holder final : methods {
    explicit holder(Rule one) : rule(std::move(one)) {}
    std::unique_ptr<methods> copy() const override { return std::make_unique<holder>(rule); }
    std::string_view name() const override { return name_of(rule); }
    bool whole_model() const override {
      if constexpr (requires { rule.whole_model(); })
        return rule.whole_model();
      else
        return false;
    }
    int degree() const override { return degree_of(rule); }
    std::vector<double> parameters() const override {
      return with_parameters_of(rule, [](std::span<const double> all) { return std::vector(all.begin(), all.end()); });
    }
    std::size_t fallbacks() const override { return fallbacks_of(rule); }
    void weigh(gram_view gram, std::span<double> weights, std::size_t segment) override {
      if constexpr (requires { rule(gram, weights, segment); })
        rule(gram, weights, segment);
      else
        rule(gram, weights);
    }
    Rule rule;
  };

  std::unique_ptr<methods> rule_;
};

}  // namespace adasum::rules
