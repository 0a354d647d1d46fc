// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls that are only enqueued on a stream, of the emulated device and its NCCL: pairs and trees on one rank, single reductions
// and plans among up to three ranks, of which one may be told something else where all ranks compare what they are about to do.
// Every rank gets a result or an error of the library's, no rank waits for ever, and where all give the same, all get the same
// bits, and a plan gives them in every run; good input gives what one process computes from the definition.
#define DOCTEST_CONFIG_DISABLE  // the support of tests is for its programs
#include <adasum/adasum.hpp>
#include <adasum/enqueued_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "../support/device.hpp"
#include "../support/nccl_group.hpp"
#include "expected.hpp"
#include "input.hpp"
#include "order.hpp"
#include "ranks.hpp"

namespace {

using namespace adasum::fuzz;

enum class enqueued { pair, tree, allreduce, plan };

/// `common` says what calls among ranks have in common: type, lengths, options. Its rules and schedules are those of the trees.
struct enqueued_order {
  enqueued what{};
  order common;
  std::size_t rule = 0, schedule = 0;
  std::size_t runs = 1;
};

enqueued_order some_enqueued_order(input& in, int ranks) {
  enqueued_order found;
  found.what = static_cast<enqueued>(in.up_to(3));
  if (ranks != 2 && found.what == enqueued::pair) found.what = enqueued::tree;
  found.common = some_order(in, ranks);
  if (in.up_to(3) != 0) {  // mostly options that a stream knows
    found.common.choices.nonfinite = adasum::nonfinite_policy::propagate;
    found.common.choices.wire = adasum::wire_format::same;
  }
  found.common.radix = in.up_to(5);
  found.rule = in.up_to(2);
  found.schedule = in.up_to(3);
  found.runs = 1 + in.up_to(2);
  // As `expect` knows them.
  found.common.mine.reset();
  found.common.forgets_one = found.common.repeats_one = false;
  found.common.what = found.what == enqueued::plan && found.rule > 0 ? call::by_rule : call::allreduce;
  found.common.rule = found.rule - 1;
  found.common.schedule = 0;
  return found;
}

bool is_local(enqueued what) { return what <= enqueued::tree; }

bool is_good_input(const enqueued_order& one, std::size_t ranks) {
  const auto& choices = one.common.choices;
  return is_good(one.common, ranks) &&
         (is_local(one.what) ||
          (choices.nonfinite == adasum::nonfinite_policy::propagate && choices.wire == adasum::wire_format::same &&
           (one.schedule % 3 == 0 || one.common.radix >= 2)));
}

template <class Call>
void with_rule(std::size_t which, const Call& call) {
  switch (which) {
    case 0: return call(adasum::rules::adasum{});
    case 1: return call(adasum::rules::mean{});
    default: return call(adasum::rules::sum{});
  }
}
template <class Call>
void with_schedule(const enqueued_order& one, const Call& call) {
  namespace schedules = adasum::schedules;
  switch (one.schedule) {
    case 0: return call(schedules::automatic{});
    case 1: return call(schedules::recursive_doubling{one.common.radix});
    case 2: return call(schedules::recursive_halving{one.common.radix});
    default: return call(schedules::all_to_all{});
  }
}

template <adasum::scalar T>
outcome result_in(const adasum::test::device_array<T>& array, const adasum::cuda_space& exec) {
  exec.fence();
  const auto values = array.values();
  outcome found{true, {}, {0, values.size()}};
  for (const auto x : values) found.values.push_back(adasum::test::to_double(x));
  return found;
}

/// On one rank: the first two gradients, or all of them.
template <adasum::scalar T>
outcome combine(const enqueued_order& what, const std::vector<std::vector<double>>& gradients) {
  const adasum::test::stream queue;
  const adasum::cuda_space exec(queue);
  std::vector<adasum::test::device_array<T>> arrays;
  for (const auto& one : gradients) arrays.emplace_back(adasum::test::from_doubles<T>(one));
  const adasum::test::device_array<T> out(adasum::test::from_doubles<T>(gradients.front()));
  try {
    const auto cut = segments_of(what.common.length, what.common.lengths);
    if (what.what == enqueued::pair)
      adasum::enqueue_adasum_pair(exec, arrays.front().all(), arrays.back().all(), out.all(), cut);
    else
      adasum::enqueue_adasum_tree(exec, adasum::test::spans_of(arrays), out.all(), cut);
    return result_in(out, exec);
  } catch (const adasum::error&) {
    exec.fence();
    return {};
  }
}

/// Among ranks.
template <adasum::scalar T>
outcome reduce(const enqueued_order& what, const adasum::nccl_communicator& comm, const adasum::cuda_space& exec,
               const std::vector<double>& numbers) {
  const auto gradient = adasum::test::from_doubles<T>(numbers);
  adasum::test::device_array<T> array(gradient);
  outcome found;
  try {
    const auto cut = segments_of(what.common.length, what.common.lengths);
    with_schedule(what, [&](const auto& schedule) {
      if (what.what == enqueued::allreduce) {
        adasum::enqueue_adasum_allreduce(exec, comm, array.all(), cut, schedule, what.common.choices);
        found = result_in(array, exec);
        return;
      }
      with_rule(what.rule, [&](const auto& rule) {
        auto plan = adasum::plan_enqueued_allreduce<T>(exec, comm, cut, rule, schedule, what.common.choices);
        for (std::size_t run = 0; run < what.runs; ++run) {
          array.assign(gradient);
          plan(array.all());
          auto got = result_in(array, exec);
          require(run == 0 || same_bits(found, got), "each run of a plan gives the bits of the first");
          found = std::move(got);
        }
      });
    });
    return found;
  } catch (const adasum::error&) {
    exec.fence();
    return {};
  }
}

/// call(T{}) for the type that the order names.
auto with_type(const enqueued_order& one, const auto& call) {
  switch (one.common.type) {
    case 0: return call(float{});
    case 1: return call(double{});
    default: return call(__half{});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const auto ranks = 1 + in.up_to(2);
  const auto common = some_enqueued_order(in, static_cast<int>(ranks));
  std::vector<enqueued_order> orders(ranks, common);
  const bool one_differs = !is_local(common.what) && in.up_to(3) == 0;
  if (one_differs) {
    auto& other = orders[in.up_to(ranks - 1)];
    other = some_enqueued_order(in, static_cast<int>(ranks));
    other.what = common.what;  // a plan that runs more often would wait for the others
    other.runs = common.runs;
  }
  const bool odd_numbers = in.flag();
  std::vector<std::vector<double>> gradients;
  for (auto& one : orders) {
    if (one_differs)
      one.common.choices.check_agreement = true;  // otherwise the other ranks' streams would wait for ever
    try {
      // Impossible segments throw before the call, and the other ranks would wait. Sanitizers allow no call to ask for much.
      if (segments_of(one.common.length, one.common.lengths).total() > 1'000'000) return 0;
    } catch (const adasum::error&) {
      if (one_differs) return 0;
    }
    gradients.push_back(some_gradient<float>(in, one.common.length, odd_numbers));
  }

  std::vector<outcome> got;
  if (is_local(common.what)) {
    got.push_back(with_type(common, [&](auto zero) { return combine<decltype(zero)>(common, gradients); }));
  } else {
    const auto found = adasum::test::on_nccl(static_cast<int>(ranks), [&](const auto& comm, const auto& exec) {
      const auto r = static_cast<std::size_t>(comm.rank());
      return with_type(orders[r],
                       [&](auto zero) { return reduce<decltype(zero)>(orders[r], comm, exec, gradients[r]); });
    });
    for (const auto& one : found) {
      require(one.value.has_value(), "every error is the library's");
      got.push_back(*one.value);
    }
  }

  if (one_differs) {
    const bool differ = std::ranges::any_of(orders, [&](const enqueued_order& one) {
      return one.common.type != orders[0].common.type || (one.what == enqueued::plan && one.rule != orders[0].rule);
    });
    for (const auto& one : got)
      require(one.is_result == (got[0].is_result && !differ), "all ranks that compare get a result, or none does");
    return 0;
  }
  require_same(got);
  if (odd_numbers || !is_good_input(common, ranks)) return 0;
  const auto expected = with_type(common, [&](auto zero) { return expect<decltype(zero)>(common.common, gradients); });
  for (const auto& one : got) {
    require(one.is_result, "good input is not refused");
    require_as_expected(one, expected);
  }
  return 0;
}
