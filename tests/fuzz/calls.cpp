// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls among ranks with arguments of any kind, on up to three ranks of which one may give others: every rank gets a result or
// an error of the library's, no rank waits for ever, and where all give the same good input, all get the same bits, and these
// are what one process computes from the definition.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "carry_out.hpp"
#include "expected.hpp"
#include "input.hpp"
#include "order.hpp"
#include "ranks.hpp"

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
  for (const auto& one : orders) gradients.push_back(some_gradient<float>(in, one.length, odd_numbers));

  const auto got = on_each_rank(ranks, [&](std::size_t r, const adasum::thread_communicator& comm) {
    return carry_out(orders[r], comm, gradients[r]);
  });

  if (one_differs || common.mine) return 0;
  require_same(got);
  if (odd_numbers || !is_good(common, ranks)) return 0;
  for (const auto& one : got) require(one.is_result, "good input is not refused");
  if (common.what == call::by_rule && common.rule > 1) return 0;
  const auto expected = expectation_of(common, gradients);
  for (const auto& one : got) require_as_expected(one, expected);
  return 0;
}
