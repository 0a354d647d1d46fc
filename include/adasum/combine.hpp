// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/combine_window.hpp"
#include "core/concepts.hpp"
#include "core/gradient.hpp"
#include "core/nonfinite.hpp"
#include "core/options.hpp"
#include "core/report.hpp"

namespace adasum {
namespace detail {

template <scalar T, gradient_list Gradients>
std::vector<std::span<const T>> inputs_of(Gradients&& gradients) {
  static_assert(std::is_same_v<element_t<std::ranges::range_reference_t<Gradients>>, T>,
                "combine: the gradients and the output must have one element type");
  std::vector<std::span<const T>> inputs;
  for (auto&& gradient : gradients) inputs.push_back(const_span_of(gradient));
  return inputs;
}

template <scalar T>
std::vector<const T*> addresses_of(const std::vector<std::span<const T>>& inputs) {
  std::vector<const T*> addresses;
  for (const auto& input : inputs) addresses.push_back(input.data());
  return addresses;
}

/// Inputs of one length, segments that add up to it, an output that is apart from every input or is one of them; all of
/// them where the space can reach them.
template <scalar T, class Space>
void require_combinable(const Space& space, std::span<const std::span<const T>> inputs, std::span<T> out,
                        segments_view segments, const char* call) {
  if (inputs.empty()) throw bad_input(std::string(call) + ": there is no gradient to combine");
  const auto output = [] { return std::string("the output"); };
  require_not_null(std::span<const T>(out), output, call);
  require_reachable(space, std::span<const T>(out), output, call);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto which = [i] { return "gradient " + std::to_string(i); };
    if (inputs[i].size() != out.size())
      throw bad_input(std::string(call) + ": " + which() + " has " + std::to_string(inputs[i].size()) +
                      " elements, the output has " + std::to_string(out.size()));
    require_not_null(inputs[i], which, call);
    require_reachable(space, inputs[i], which, call);
    require_same_or_apart(inputs[i], std::span<const T>(out), which, call);
  }
  require_segments_match(segments, out.size(), call);
}

/// Cuts segments into rounds of measure and mix. A space that computes from caches names round_bytes: then what one
/// round has measured is still there when it is mixed, and short segments share the cost of a round.
template <class Space>
class local_rounds {
 public:
  /// The most segments of a round, unless it is the only one.
  static constexpr std::size_t most = 64;

  /// @param bytes      of all vectors together, for each element
  /// @param undivided  whether there must be one round only
  local_rounds(segments_view segments, std::size_t bytes, bool undivided)
      : segments_(segments), bytes_(bytes), undivided_(undivided || !has_limit) {}

  /// How many segments a round has at most.
  std::size_t longest() const { return undivided_ ? segments_.size() : std::min(segments_.size(), most); }

  /// How many segments the round has that begins with the given one: as many as fit, at least one.
  std::size_t length_from(std::size_t first) const {
    const std::size_t rest = segments_.size() - first;
    if (undivided_) return rest;
    std::size_t count = 1;
    while (count < std::min(rest, most) && bytes_ * segments_.part(first, count + 1).all().size() <= limit()) ++count;
    return count;
  }

 private:
  static constexpr bool has_limit = requires { Space::round_bytes; };
  static constexpr std::size_t limit() {
    if constexpr (has_limit) return Space::round_bytes;
    return 0;
  }

  segments_view segments_;
  std::size_t bytes_;
  bool undivided_;
};

/// Which of this process's gradients take part, where not all of them may be finite. One that does not is replaced by
/// zeros, as a rank's gradient is.
template <scalar T, execution_space<T> Space>
class local_participants {
 public:
  local_participants(const Space& space, std::vector<const T*>& vectors, segments_view segments)
      : space_(space), vectors_(vectors), segments_(segments), leaves_(vectors.size(), 1) {}

  /// @throws nonfinite_error if `raise` and a gradient is not finite
  void decide(bool raise, report& found) {
    const auto k = segments_.size(), n = vectors_.size();
    flags_.resize(n * k);
    std::vector<double> gram(k);
    for (std::size_t i = 0; i < n; ++i) {
      const auto mine = std::span(flags_).subspan(i * k, k);
      find_nonfinite<T>(space_, vectors_[i], segments_, gram, mine);
      if (std::ranges::find(mine, 1) == mine.end()) continue;
      leaves_[i] = 0;
      found.exclude(static_cast<int>(i));
    }
    if (found.excluded().empty()) return;
    if (raise) throw nonfinite_error("adasum: Inf or NaN in " + describe_nonfinite(flags_, k, "gradient"));
    zeros_ = space_.template allocate<T>(segments_.all().end);
    std::ranges::fill(gram, 0.0);
    space_.mix(whole(segments_), std::span<const T* const>(vectors_).first(1), gram.data(), zeros_->data());
    for (std::size_t i = 0; i < n; ++i)
      if (leaves_[i] == 0) vectors_[i] = zeros_->data();
  }

  std::span<const std::size_t> leaves() const { return leaves_; }
  void finish(report& found) const { found.finish_excluded(flags_); }

 private:
  const Space& space_;
  std::vector<const T*>& vectors_;
  segments_view segments_;
  std::vector<std::size_t> leaves_;
  std::vector<unsigned char> flags_;
  std::optional<decltype(std::declval<const Space&>().template allocate<T>(0))> zeros_;
};

/// measure → weigh → mix of n vectors of this process, round by round.
/// @param leaves   how many gradients each vector already combines; 0 for one that takes no part
/// @param measure  whether to measure; false only for a rule that needs no Gram matrix
template <scalar T, execution_space<T> Space, rule Rule, class Observer>
void combine_segments(const Space& space, Rule& rule, std::span<const T* const> vectors,
                      std::span<const std::size_t> leaves, T* out, segments_view segments, Observer&& observe,
                      bool measure = true) {
  const std::size_t n = vectors.size();
  const local_rounds<Space> rounds(segments, n * sizeof(T), weighs_whole_model(rule));
  const std::size_t round = rounds.longest();
  // Two vectors are the common case and often short: no allocation there.
  constexpr std::size_t few = 2, few_segments = local_rounds<Space>::most;
  const bool small = n <= few && round <= few_segments;
  std::array<double, (few_segments + 1) * (packed_size(few) + few)> on_stack;
  std::vector<double> on_heap(small ? 0 : (round + 1) * (packed_size(n) + n));
  const auto memory = small ? std::span<double>(on_stack) : std::span(on_heap);
  weigh_scratch scratch(pairwise_rule<Rule> && n == 2 ? 0 : n);

  for (std::size_t first = 0, count = 0; first < segments.size(); first += count) {
    count = rounds.length_from(first);
    const auto part = segments.part(first, count);
    const slice window{part, part.all(), 0};
    auto rest = memory;
    const auto take = [&](std::size_t size) { return std::exchange(rest, rest.subspan(size)).first(size); };
    const round_memory arrays{take(count * packed_size(n)), take(count * n), take(n), take(packed_size(n)), scratch};
    if (measure) {
      // Each round is short, but all of them together may be more than the caches hold.
      if constexpr (requires { Space::template comes_from_memory<T>(window, n); })
        space.measure(window, vectors, arrays.gram.data(), Space::template comes_from_memory<T>(whole(segments), n));
      else
        space.measure(window, vectors, arrays.gram.data());
      space.fence();
    } else {
      std::ranges::fill(arrays.gram, 0.0);
    }
    const auto alone = [](std::span<double>) {};
    if constexpr (std::is_same_v<std::remove_cvref_t<Observer>, no_observer>)
      weigh_and_mix<T>(space, rule, window, vectors, leaves, first, out, arrays, alone, observe);
    else
      weigh_and_mix<T>(space, rule, window, vectors, leaves, first, out, arrays, alone,
                       [&](std::size_t k, const segment_outcome& outcome) { observe(first + k, outcome); });
  }
  space.fence();
}

}  // namespace detail

/// The combination of any number of gradients of this process under any rule, segment by segment:
///
///     out = Σᵢ cᵢ gᵢ,   c = rule(G),   G(i, j) = gᵢ·gⱼ
///
/// in two passes over the gradients. `out` may be one of them. Inf or NaN in a segment of any gradient makes that whole
/// segment of out NaN (where the rule is measured), and the report names it; or as options::nonfinite says. A segment
/// in which inner products lose too much (cancellation, squares outside the range of double) is combined vector by
/// vector. A rule with state changes it where `rule` is an lvalue. Returns when out is complete.
/// @throws bad_input        no gradient, unequal lengths, segments that do not add up to the length, an output that
///                          overlaps an input in part; before anything changes
/// @throws nonfinite_error  with nonfinite_policy::raise; before anything changes
template <class Space, class Rule, gradient_list Gradients, mutable_gradient Out,
          bool Checked = options::checked_by_default>
  requires execution_space<Space, element_t<Out>> && rule<std::remove_cvref_t<Rule>>
report combine(const Space& space, Rule&& rule, Gradients&& gradients, Out&& out, segments_view segments,
               const basic_options<Checked>& choices = {}) {
  using T = element_t<Out>;
  using rule_type = std::remove_cvref_t<Rule>;
  const auto inputs = detail::inputs_of<T>(gradients);
  auto vectors = detail::addresses_of<T>(inputs);
  const auto target = detail::span_of(out);
  detail::require_combinable<T>(space, inputs, target, segments, "adasum::combine");

  const bool measure = needs_gram<rule_type> || choices.measure == measuring::always;
  report found(vectors.size(), segments.size(), rule_type::name, {});
  found.set_measured(measure);
  detail::local_participants<T, Space> participants(space, vectors, segments);
  if (choices.nonfinite != nonfinite_policy::propagate)
    participants.decide(choices.nonfinite == nonfinite_policy::raise, found);

  // A rule that was given as a constant, or as a temporary, is used as a copy.
  std::conditional_t<std::is_const_v<std::remove_reference_t<Rule>>, rule_type, rule_type&> used = rule;
  const auto fallbacks = fallbacks_of(used);
  detail::combine_segments<T>(
      space, used, std::span<const T* const>(vectors), participants.leaves(), target.data(), segments,
      [&](std::size_t k, const detail::segment_outcome& outcome) {
        for (std::size_t i = 0; i < vectors.size(); ++i)
          found.row(i)[k] = {measure ? outcome.norms[i] : std::numeric_limits<double>::quiet_NaN(), outcome.weights[i]};
        found.result_norms()[k] = measure ? outcome.result_norm : std::numeric_limits<double>::quiet_NaN();
        if (outcome.direct) found.count_direct_segment();
      },
      measure);
  found.set_fallbacks(fallbacks_of(used) - fallbacks);
  participants.finish(found);
  return found;
}

/// The same with all elements in one segment.
template <class Space, class Rule, gradient_list Gradients, mutable_gradient Out>
  requires execution_space<Space, element_t<Out>> && rule<std::remove_cvref_t<Rule>>
report combine(const Space& space, Rule&& rule, Gradients&& gradients, Out&& out) {
  const std::array<std::size_t, 2> offsets{0, detail::span_of(out).size()};
  return combine(space, rule, gradients, out, segments_view{offsets});
}

}  // namespace adasum
