// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls among ranks with arguments of any kind, on up to three ranks of which one may give others: every rank gets a result or
// an error of the library's, no rank waits for ever, and where all give the same good input, all get the same bits, and these
// are what one process computes from the definition.
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "carry_out.hpp"
#include "expected.hpp"
#include "input.hpp"
#include "order.hpp"

namespace {

using namespace adasum::fuzz;

outcome carry_out(const order& what, const adasum::thread_communicator& comm, const std::vector<double>& gradient) {
  switch (what.type) {
    case 0: return carry_out_as<float>(what, comm, gradient);
    case 1: return carry_out_as<double>(what, comm, gradient);
    default: return carry_out_as<half>(what, comm, gradient);
  }
}

expectation expectation_of(const order& one, const std::vector<std::vector<double>>& gradients) {
  switch (one.type) {
    case 0: return expect<float>(one, gradients);
    case 1: return expect<double>(one, gradients);
    default: return expect<half>(one, gradients);
  }
}

/// What holds where all ranks were told the same: all have a result, or none, with the same bits where two have it.
void require_same(const std::vector<outcome>& got) {
  for (const auto& one : got) {
    require(one.is_result == got[0].is_result, "with the same arguments, all ranks get a result, or none does");
    if (!one.is_result) continue;
    require(one.values.size() == got[0].values.size(), "all results have the same length");
    const auto begin = std::max(one.valid.begin, got[0].valid.begin), end = std::min(one.valid.end, got[0].valid.end);
    if (begin < end)
      require(std::memcmp(&one.values[begin], &got[0].values[begin], (end - begin) * sizeof(double)) == 0,
              "all ranks get the same bits");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const auto ranks = 1 + in.up_to(2);
  const auto common = some_order(in, static_cast<int>(ranks));
  std::vector<order> orders(ranks, common);
  for (std::size_t r = 0; r < ranks; ++r)  // shards differ in any case
    if (auto& mine = orders[r].mine; mine && in.flag()) *mine = {static_cast<int>(r), 0, mine->replicated};
  const bool one_differs = in.up_to(3) == 0;
  if (one_differs) orders[in.up_to(ranks - 1)] = some_order(in, static_cast<int>(ranks));

  const bool odd_numbers = in.flag();
  std::vector<std::vector<double>> gradients;
  for (const auto& one : orders) {
    std::vector<double> gradient(one.length);
    for (auto& x : gradient)
      x = odd_numbers ? static_cast<double>(in.number<float>()) : static_cast<double>(in.up_to(9)) - 4;
    gradients.push_back(std::move(gradient));
  }

  auto group = adasum::thread_communicator::group(static_cast<int>(ranks));
  std::vector<outcome> got(ranks);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      const auto comm = std::move(group[r]);  // a rank that is done leaves: who still waits for it gets an error
      try {
        got[r] = carry_out(orders[r], comm, gradients[r]);
      } catch (const std::exception& other) {
        require(false, other.what());
      }
    });
  for (auto& thread : threads) thread.join();

  if (one_differs || common.mine) return 0;
  require_same(got);
  if (odd_numbers || !is_good(common, ranks)) return 0;
  for (const auto& one : got) require(one.is_result, "good input is not refused");
  if (common.what == call::by_rule && common.rule > 1) return 0;
  const auto expected = expectation_of(common, gradients);
  for (const auto& one : got) require_as_expected(one, expected);
  return 0;
}
