// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Public calls with arguments of any kind, on up to three ranks of which one may give others: every rank gets a result or an
// error of the library's, no rank waits for ever, and where all give the same good input, all get the same bits.
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "input.hpp"

namespace {

using adasum::fuzz::input;
using adasum::fuzz::require;

/// What one rank is told to do.
struct order {
  std::size_t call = 0, length = 0;
  std::vector<long long> lengths, parts;
  int root = 0;
  std::optional<adasum::shard> mine;
  adasum::options choices{};
  std::size_t radix = 2;
};

long long some_length(input& in) {
  switch (in.up_to(7)) {
    case 0: return -1 - static_cast<long long>(in.up_to(3));
    case 1: return in.number<long long>();
    default: return static_cast<long long>(in.up_to(20));
  }
}

order some_order(input& in, int ranks) {
  order found;
  found.call = in.up_to(6);
  found.length = in.up_to(40);
  const auto left = [&](std::vector<long long>& lengths, std::size_t count) {
    long long rest = static_cast<long long>(found.length);
    for (std::size_t i = 0; i + 1 < count; ++i) {
      lengths.push_back(in.flag() ? rest / 2 : some_length(in));
      rest -= std::clamp(lengths.back(), 0LL, rest);
    }
    if (count > 0) lengths.push_back(in.up_to(5) == 0 ? some_length(in) : rest);
  };
  left(found.lengths, in.up_to(4));
  left(found.parts, in.up_to(1) == 0 ? static_cast<std::size_t>(ranks) : in.up_to(4));
  found.root = static_cast<int>(in.up_to(3)) - 1;
  if (in.flag()) {
    found.mine.emplace();
    found.mine->replica = in.up_to(9) == 0 ? in.number<int>() : static_cast<int>(in.up_to(2));
    found.mine->index = in.up_to(9) == 0 ? in.number<int>() : static_cast<int>(in.up_to(1));
    for (std::size_t count = in.up_to(2); count > 0; --count)
      found.mine->replicated.push_back(in.up_to(9) == 0 ? in.number<std::size_t>() : in.up_to(3));
  }
  found.choices.check_agreement = in.flag();
  found.choices.nonfinite = static_cast<adasum::nonfinite_policy>(in.up_to(3));
  found.choices.wire = static_cast<adasum::wire_format>(in.up_to(3));
  found.choices.measure = static_cast<adasum::measuring>(in.up_to(2));
  found.radix = in.up_to(5);
  return found;
}

/// @return whether it got a result
bool carry_out(const order& what, const adasum::thread_communicator& comm, std::vector<float>& gradient) {
  const adasum::serial_space exec;
  try {
    const bool whole = what.lengths.empty();
    const adasum::segments segs =
        whole ? adasum::segments{gradient.size()} : adasum::segments(what.lengths.begin(), what.lengths.end());
    const adasum::schedules::recursive_halving halving{what.radix};
    switch (what.call) {
      case 0: adasum::adasum_allreduce(exec, comm, gradient, segs, what.choices); break;
      case 1:
        if (what.mine)
          adasum::adasum_allreduce(exec, comm, gradient, segs, halving, *what.mine, what.choices);
        else
          adasum::adasum_allreduce(exec, comm, gradient, segs, halving, what.choices);
        break;
      case 2: adasum::combine_allreduce(exec, comm, gradient, segs, adasum::rules::adacons{}, what.choices); break;
      case 3:
        adasum::adasum_reduce_scatter(exec, comm, gradient, segs, adasum::parts(what.parts.begin(), what.parts.end()),
                                      what.choices);
        break;
      case 4: adasum::adasum_reduce(exec, comm, gradient, what.root, segs, what.choices); break;
      case 5: {
        if (segs.total() > 1'000'000) return false;  // sanitizers end a program that asks for too much memory
        auto plan = adasum::plan_allreduce<float>(exec, comm, segs, what.choices);
        plan.start(gradient);
        plan.test();
        plan.wait();
        plan(gradient);
        break;
      }
      default: {
        std::vector<float> out(gradient.size());
        adasum::adasum_pair(exec, gradient, gradient, out, segs);
        const std::array<std::vector<float>, 3> all{gradient, out, gradient};
        adasum::combine(exec, all, out, segs, adasum::rules::geometric_median{}, what.choices);
        adasum::adasum_allreduce(exec, comm, out, segs, what.choices);
        gradient = out;
        break;
      }
    }
    return true;
  } catch (const adasum::error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const int ranks = 1 + static_cast<int>(in.up_to(2));
  const auto common = some_order(in, ranks);
  std::vector<order> orders(static_cast<std::size_t>(ranks), common);
  for (int r = 0; r < ranks; ++r) {  // shards differ in any case
    auto& mine = orders[static_cast<std::size_t>(r)].mine;
    if (mine && in.flag()) *mine = {r, 0, mine->replicated};
  }
  const bool one_differs = in.up_to(3) == 0;
  if (one_differs) orders[in.up_to(static_cast<std::size_t>(ranks) - 1)] = some_order(in, ranks);

  const bool odd_numbers = in.flag();
  std::vector<std::vector<float>> gradients;
  for (const auto& one : orders) {
    std::vector<float> gradient(one.length);
    for (auto& x : gradient) x = odd_numbers ? in.number<float>() : static_cast<float>(in.up_to(9)) - 4;
    gradients.push_back(std::move(gradient));
  }

  auto group = adasum::thread_communicator::group(ranks);
  std::vector<char> got(static_cast<std::size_t>(ranks), 0);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      const auto self = static_cast<std::size_t>(r);
      const auto comm = std::move(group[self]);  // a rank that is done leaves: who still waits for it gets an error
      try {
        got[self] = carry_out(orders[self], comm, gradients[self]);
      } catch (const std::exception& other) {
        require(false, other.what());
      }
    });
  for (auto& thread : threads) thread.join();

  if (!one_differs && common.call != 3 && common.call != 4 && !(common.call == 1 && common.mine))
    for (int r = 1; r < ranks; ++r) {
      const auto self = static_cast<std::size_t>(r);
      require(got[self] == got[0], "with the same arguments, all ranks get a result, or none does");
      if (got[0] && !gradients[0].empty())
        require(std::memcmp(gradients[self].data(), gradients[0].data(), gradients[0].size() * sizeof(float)) == 0,
                "all ranks get the same bits");
    }
  return 0;
}
