// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "combine.hpp"
#include "core/concepts.hpp"
#include "core/error.hpp"
#include "core/gradient.hpp"
#include "core/input_checks.hpp"
#include "detail/arguments.hpp"
#include "detail/gradient_arguments.hpp"
#include "detail/numerics/combination.hpp"
#include "detail/references/space_ref.hpp"
#include "rules/adasum.hpp"

namespace adasum {

/// Combines the gradients of micro-batches, one at a time, into a single gradient before it is communicated: total ←
/// rule(total, gradient), segment by segment. With rules::adasum the result is rules::adasum_linear of all of them; with
/// rules::sum or rules::mean, their sum or mean. It needs the memory of one gradient, however many are added.
///
///     auto total = adasum::plan_accumulator<float>(exec, segs);
///     for (auto& batch : micro_batches) total.add(backward(batch));
///     plan(total.gradient());
///     total.reset();
template <scalar T, execution_space<T> Space, pairwise_rule Rule = rules::adasum>
class accumulator {
 public:
  /// @throws bad_input if the boundaries of the segments do not begin at 0 or decrease
  accumulator(Space space, segments_view segments, Rule rule = {})
      : space_(std::move(space)),
        rule_(std::move(rule)),
        offsets_(checked_offsets(segments)),
        total_(space_.template allocate<T>(length())) {}

  /// Adds one more gradient; returns when it has been read.
  /// @throws bad_input  the gradient has another length, or overlaps gradient(); nothing has changed then
  template <class Gradient>
  void add(Gradient&& gradient) {
    if constexpr (detail::is_gradient_argument<Gradient>()) {
      static_assert(std::is_same_v<element_t<Gradient>, T>, "the accumulator was made for another element type");
      add_elements(detail::const_span_of(gradient));
    }
  }

  /// What has been added so far. @pre count() > 0
  std::span<T> gradient() { return {total_.data(), length()}; }
  /// How many gradients have been added since the last reset.
  std::size_t count() const { return count_; }
  /// How many elements a gradient has.
  std::size_t length() const { return offsets_.back(); }
  /// Discards what has been added.
  void reset() { count_ = 0; }

 private:
  static std::vector<std::size_t> checked_offsets(segments_view segments) {
    detail::require_boundaries(segments, "adasum::accumulator");
    return {segments.offsets().begin(), segments.offsets().end()};
  }

  void add_elements(std::span<const T> elements) {
    constexpr auto call = "adasum::accumulator::add";
    if (elements.size() != length())
      throw bad_input(
          {call, ": the gradient has ", detail::counted(elements.size(), "element"), ", the accumulator ", length()});
    const auto name = [] { return std::string("the gradient"); };
    detail::require_not_null(elements, name, call);
    if (elements.data() == total_.data() && !elements.empty())
      throw bad_input({call, ": the gradient is the accumulator's own"});
    detail::require_same_or_apart(elements, std::span<const T>(total_.data(), length()), name, call);
    if (count_ == 0) {
      space_.copy(elements.data(), total_.data(), length());
      space_.fence();
    } else {
      const std::array<const void*, 2> vectors{total_.data(), elements.data()};
      const std::array<std::size_t, 2> leaves{count_, 1};
      detail::combine_vectors(detail::ref_to_space<T>(space_), rule_, vectors, leaves,
                              reinterpret_cast<std::byte*>(total_.data()), segments_view{offsets_});
    }
    ++count_;
  }

  Space space_;
  Rule rule_;
  std::vector<std::size_t> offsets_;
  decltype(std::declval<const Space&>().template allocate<T>(0)) total_;
  std::size_t count_ = 0;
};

/// An accumulator of gradients of T that are cut into these segments, or of this length. A pairwise rule may follow (by
/// default rules::adasum). It does not communicate.
/// @return an accumulator
/// @throws bad_input if the boundaries of the segments do not begin at 0 or decrease
template <scalar T, class Space, class... Rules>
auto plan_accumulator(const Space& space, const detail::segments_or_length& segments, const Rules&... rule) {
  constexpr detail::taken_arguments taken{.segments = false, .schedule = false, .options = false};
  if constexpr (detail::is_space_argument<Space, T>())
    if constexpr (detail::are_arguments<taken, Rules...>()) {
      const auto used = detail::argument_or<detail::argument::rule>(rules::adasum{}, rule...);
      using rule_type = std::remove_const_t<decltype(used)>;
      static_assert(pairwise_rule<rule_type>,
                    "adasum: an accumulator needs a rule for two gradients; this one looks at all of them at once");
      if constexpr (pairwise_rule<rule_type>)
        return segments.visit([&](segments_view cut) { return accumulator<T, Space, rule_type>(space, cut, used); });
    }
}

}  // namespace adasum
