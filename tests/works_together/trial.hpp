// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/communicators/any.hpp>
#include <adasum/core/error.hpp>
#include <adasum/core/optional_members.hpp>
#include <adasum/schedules/hierarchical.hpp>

#include "combination.hpp"
#include "definition.hpp"
#include "reduction.hpp"
#include "refusals.hpp"
#include "support/shards.hpp"

namespace adasum::test {

/// What became of a combination on one rank.
struct trial_result {
  enum class kind { right, raised, refused, wrong };
  kind came = kind::right;
  std::string text{};      ///< how it was refused, or what is wrong
  std::string schedule{};  ///< that ran
  bool rounded = false;    ///< whether elements travelled in 16 bits
  std::uint64_t bits = 0;  ///< of a result that is the same on all ranks
};

/// One combination on one rank, judged by the definition. @tparam Named  the rule's own type, if Rule stands for it
template <scalar T, class Rule, class Named = Rule>
class trial {
 public:
  trial(const any_communicator& comm, const setting& where, const combination& one, const Rule& rule)
      : comm_(comm),
        where_(where),
        one_(one),
        rule_(rule),
        count_(one.has_shard ? comm.size() / 2 : comm.size()),
        cut_(cutting::by::segments, one.is_long ? long_ones : short_ones, {}, 2),
        gradients_(usual_gradients<T>(static_cast<std::size_t>(count_), cut_.whole().total())) {
    if (one.not_finite) gradients_[0][1] = infinity<T>();
  }

  /// @param run  run(mine): the reduction
  template <class Run>
  trial_result judge(const Run& run) const {
    using enum trial_result::kind;
    const auto refusal = refusal_of(one_, where_, compiles(), comm_.size());
    if (refusal && refusal->by_compiler) return {refused, refusal->word()};
    try {
      const auto result = run(mine());
      if (refusal) return {wrong, "returned, in place of " + refusal->word()};
      if (one_.disagrees && comm_.size() > 1) return {wrong, "returned, though ranks disagree"};
      trial_result found{right, problem_with(result)};
      if (!found.text.empty()) found.came = wrong;
      found.schedule = result.found.schedule();
      found.rounded = result.found.wire() != wire_format::same;
      if (gives_all(one_.call) && !one_.has_shard) found.bits = bits_of(result);
      return found;
    } catch (const nonfinite_error&) {
      if (!one_.not_finite || one_.choices.nonfinite != nonfinite_policy::raise || refusal)
        return {wrong, "nonfinite_error"};
      return {raised, "nonfinite_error"};
    } catch (const error& problem) {
      if (refusal && says(*refusal, problem.what())) return {refused, refusal->word()};
      if (one_.disagrees && is_told_of_disagreement(problem))
        return {raised, one_.choices.check_agreement ? "agreement_error" : "communication_error"};
      return {wrong, problem.what()};
    }
  }

  /// Pairs of ranks; of replicas where gradients are cut.
  schedules::hierarchical<rules::mean, chosen_schedule> by_pairs() const {
    std::vector<int> nodes(static_cast<std::size_t>(count_));
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i] = static_cast<int>(i / 2);
    return {std::move(nodes), rules::mean{}, *one_.schedule};
  }

 private:
  static inline const std::vector<std::size_t> short_ones{40, 17, 33}, long_ones{1500, 500, 96};

  /// Whether the rule that is meant compiles with the schedule. (An any_rule does with each, and is refused by the call:
  /// tests/rules/any_rule.cpp.)
  template <class Schedule>
  static constexpr bool is_for = schedule_for<Schedule, Named> &&
                                 (!detail::is_chosen_at_run_time<Named> || Schedule::supports_gram_rules);
  bool compiles() const {
    return one_.schedule->visit([&]<class Schedule>(const Schedule&) {
      return one_.by_node ? is_for<schedules::hierarchical<rules::mean, Schedule>> : is_for<Schedule>;
    });
  }
  std::size_t own_shard() const { return one_.has_shard ? static_cast<std::size_t>(comm_.rank() % 2) : 0; }
  int own_number() const { return one_.has_shard ? comm_.rank() / 2 : comm_.rank(); }
  own_gradient<T> mine() const {
    const auto& whole = gradients_[static_cast<std::size_t>(own_number())];
    if (one_.disagrees && comm_.rank() == 1) return {whole, other_segments(), {}};
    if (!one_.has_shard) return {whole, cut_.whole(), {}};
    const auto s = own_shard();
    return {cut_.shard_of(whole, s), cut_.segments_of(s), shard{own_number(), static_cast<int>(s), {}}};
  }

  /// As long, but not cut alike.
  segments other_segments() const {
    auto all = one_.is_long ? long_ones : short_ones;
    ++all[0], --all[1];
    return segments(all);
  }
  bool is_told_of_disagreement(const error& problem) const {
    if (!one_.choices.check_agreement) return dynamic_cast<const communication_error*>(&problem) != nullptr;
    return dynamic_cast<const agreement_error*>(&problem) != nullptr &&
           std::string_view(problem.what()).find("disagree on") != std::string_view::npos;
  }

  // ── what must come out ──

  /// Where the Inf counts.
  bool is_concerned(std::size_t k) const { return one_.not_finite && k == 0; }
  bool takes_part(std::size_t i, std::size_t k) const {
    if (!one_.not_finite || i != 0 || one_.choices.nonfinite == nonfinite_policy::propagate) return true;
    return one_.call == call_of_ranks::plan_bucketed && k != 0;  // each bucket by itself
  }
  bool is_nan(std::size_t k) const { return is_concerned(k) && one_.choices.nonfinite == nonfinite_policy::propagate; }

  real_vector expected() const {
    std::vector<real_vector> all;
    for (const auto& gradient : gradients_) {
      real_vector values;
      for (const T x : gradient) values.push_back(static_cast<real>(to_double(x)));
      if (one_.not_finite && all.empty()) values[1] = 0;
      all.push_back(std::move(values));
    }
    std::vector<std::size_t> leaves(all.size(), 1);
    if (one_.by_node) combine_pairs(all, leaves);
    const bool follows_nodes = std::holds_alternative<schedules::automatic>(one_.schedule->order) && tree_rule<Rule> &&
                               std::get<schedules::automatic>(one_.schedule->order).follows_nodes && !one_.has_shard;
    return definition_of(rule_, all, leaves, cut_.whole(),
                         follows_nodes && !one_.by_node ? where_.nodes : std::vector<int>(),
                         [&](std::size_t i, std::size_t k) { return takes_part(i, k); });
  }
  static void combine_pairs(std::vector<real_vector>& all, std::vector<std::size_t>& leaves) {
    std::vector<real_vector> pairs;
    leaves.clear();
    for (std::size_t i = 0; i < all.size(); i += 2) {
      const bool has_mate = i + 1 < all.size();
      for (std::size_t x = 0; has_mate && x < all[i].size(); ++x) all[i][x] = (all[i][x] + all[i + 1][x]) / 2;
      pairs.push_back(all[i]);
      leaves.push_back(has_mate ? 2 : 1);
    }
    all = std::move(pairs);
  }

  /// A result is rounded to T, or on its way to 16 bits, at each of a few levels; the weights follow the inner products, which
  /// are off by as much, and do not enlarge that for these gradients. What rules that solve for their weights leave is less
  /// than 1e-6 (docs/rules.md).
  real tolerance() const {
    const real unit = one_.choices.wire == wire_format::bfloat16   ? 0x1p-9L
                      : one_.choices.wire == wire_format::binary16 ? 0x1p-12L
                                                                   : rounding_to<T>.unit;
    return 8 * unit + 1e-6L;
  }

  std::string problem_with(const own_result<T>& result) const {
    if (const auto wrong = problem_with(result.found); !wrong.empty()) return wrong;
    if (comm_.rank() > 0 && gives_all(one_.call) && !one_.has_shard) return {};  // it has the bits of rank 0
    const auto exact = expected();
    std::size_t at = 0;
    for (std::size_t k = 0; k < cut_.whole().size(); ++k) {
      auto range = one_.has_shard ? cut_.part(k, own_shard()) : segments_view(cut_.whole()).range(k);
      if (!one_.has_shard) {
        range.begin = std::clamp(result.elements.begin, range.begin, range.end);
        range.end = std::clamp(result.elements.end, range.begin, range.end);
      }
      real square = 0,
           scale = one_.call == call_of_ranks::delta_allreduce ? 2 * std::sqrt(static_cast<real>(range.size())) : 0;
      bool all_nan = true;
      for (auto x = range.begin; x < range.end; ++x, ++at) {
        if (at >= result.values.size()) return "too few elements";
        const auto value = static_cast<real>(to_double(result.values[at]));
        all_nan = all_nan && std::isnan(value);
        square += (value - exact[x]) * (value - exact[x]);
      }
      for (const auto& gradient : gradients_) {
        real sum = 0;
        for (auto x = range.begin; x < range.end; ++x)
          if (const auto value = static_cast<real>(to_double(gradient[x])); std::isfinite(value)) sum += value * value;
        scale += std::sqrt(sum);
      }
      const auto segment = "segment " + std::to_string(k);
      if (is_nan(k) && !all_nan) return segment + " is not NaN";
      if (is_nan(k)) continue;
      if (!(std::sqrt(square) <= tolerance() * scale))
        return segment + " is off by " + std::to_string(static_cast<double>(std::sqrt(square) / scale));
    }
    return at == result.values.size() ? "" : "too many elements";
  }
  std::string problem_with(const report& found) const {
    if (found.rule() != rule_.name) return "the report names another rule";
    if (found.contributions() != static_cast<std::size_t>(count_)) return "the report counts other gradients";
    if (!found.measured()) return "the report has no norms";
    if (found.wire() != wire_format::same && found.wire() != one_.choices.wire) return "another wire format";
    const bool leaves_out = one_.not_finite && one_.choices.nonfinite == nonfinite_policy::exclude;
    if (found.excluded() != (leaves_out ? std::vector<int>{0} : std::vector<int>{})) return "who was left out";
    return {};
  }
  static std::uint64_t bits_of(const own_result<T>& result) {
    std::uint64_t hash = 14695981039346656037u;
    for (const auto byte : std::as_bytes(std::span(result.values)))
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
    return hash;
  }

  const any_communicator& comm_;
  const setting& where_;
  const combination& one_;
  const Rule& rule_;
  int count_;
  cutting cut_;
  std::vector<std::vector<T>> gradients_;
};

}  // namespace adasum::test
