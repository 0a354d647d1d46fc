// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions among threads, each with a stream of its own on one device.
#include <adasum/adasum.hpp>

#include <optional>
#include <stdexcept>

#include "support/device.hpp"
#include "support/random_gradients.hpp"
#include "support/ranks.hpp"
#include "support/reduction.hpp"
#include "support/schedules.hpp"
#ifdef ADASUM_EMULATED_CUDA
#include "emulated_cuda/runtime.hpp"
#include "support/allocations.hpp"
#endif

namespace test_of_communicators_device {

using namespace adasum;
using namespace adasum::test;

namespace {

/// Reduces gradients[rank], each rank on a stream of its own.
template <scalar T, class Rule, class Schedule>
std::vector<reduced<T>> reduce_on_streams(const std::vector<std::vector<T>>& gradients, const segments& cut,
                                          const Rule& rule, const Schedule& order, const options& choices = {}) {
  return results_of(on_ranks(static_cast<int>(gradients.size()), [&](const thread_communicator& comm) {
    const stream queue;
    const device_array<T> gradient(gradients[static_cast<std::size_t>(comm.rank())]);
    auto found = combine_allreduce(cuda_space(queue), comm, gradient.all(), rule, cut, order, choices);
    return reduced<T>{gradient.values(), std::move(found)};
  }));
}

}  // namespace

TEST_CASE_TEMPLATE("every schedule, every rank on a stream of its own", T, float, __nv_bfloat16) {
  std::size_t turn = 0;
  for (const int size : {1, 2, 3, 4, 7}) {
    const std::size_t length = size == 3 ? 9001 : 1000;
    const auto kind = all_gradient_kinds[++turn % all_gradient_kinds.size()];
    const segments cut(random_segments(length, 1 + turn % 4, turn));
    const auto gradients = random_gradients<T>(static_cast<std::size_t>(size), length, turn, kind);
    const auto expected = expectation::of<T>(rules::adasum{}, gradients, cut);
    CAPTURE(size);
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      const auto ranks = reduce_on_streams<T>(gradients, cut, rules::adasum{}, order);
      check_same_on_all_ranks(ranks);
      check_reduced(ranks.front(), expected, cut);
    });
  }
}

TEST_CASE("other rules, nodes, a 16-bit wire, a policy for what is not finite") {
  const segments cut{1000, 24};
  auto gradients = random_gradients<float>(4, cut.total(), 3);
  for (const auto& rule_result : {reduce_on_streams<float>(gradients, cut, rules::unit_mean{}, schedules::all_to_all{}),
                                  reduce_on_streams<float>(gradients, cut, rules::adasum{},
                                                           schedules::hierarchical{{0, 0, 1, 1}, rules::mean{}})})
    check_same_on_all_ranks(rule_result);

  options choices;
  choices.wire = wire_format::bfloat16;
  const auto rounded =
      reduce_on_streams<float>(gradients, cut, rules::adasum{}, schedules::recursive_halving{}, choices);
  check_same_on_all_ranks(rounded);
  const auto exact = reduce_on_streams<float>(gradients, cut, rules::adasum{}, schedules::recursive_halving{});
  for (std::size_t x = 0; x < cut.total(); ++x)
    CHECK(rounded[0].gradient[x] == doctest::Approx(exact[0].gradient[x]).epsilon(0.05).scale(1));

  gradients[2][5] = std::numeric_limits<float>::infinity();
  options exclude;
  exclude.nonfinite = nonfinite_policy::exclude;
  const auto without =
      reduce_on_streams<float>(gradients, cut, rules::mean{}, schedules::recursive_doubling{}, exclude);
  check_same_on_all_ranks(without);
  CHECK(without[0].found.excluded().size() == 1);
  CHECK(without[0].gradient[5] == doctest::Approx((gradients[0][5] + gradients[1][5] + gradients[3][5]) / 3));
}

#ifdef ADASUM_EMULATED_CUDA
namespace {

/// A device that is lost in the middle of a reduction.
struct space_that_breaks : cuda_space {
  using cuda_space::cuda_space;
  bool breaks = false;

  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    if (breaks) emulated_cuda::break_device(true);
    cuda_space::measure<T>(window, vectors, gram);
  }
};

}  // namespace

TEST_CASE("a rank whose device is lost tells the others, and none of them waits") {
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    const auto ranks = on_ranks(3, [&](const thread_communicator& comm) {
      const stream queue;
      space_that_breaks exec(queue);
      exec.breaks = comm.rank() == 0;
      options choices;
      choices.check_agreement = false;
      const device_array<float> gradient(std::vector<float>(30000, 1));
      std::exception_ptr thrown;
      try {
        auto plan = plan_allreduce<float>(exec, comm, segments{30000}, order, choices);
        plan(gradient.all());
      } catch (...) {
        thrown = std::current_exception();
      }
      emulated_cuda::break_device(false);
      if (thrown) std::rethrow_exception(thrown);
      return 0;
    });
    CHECK(ranks[0].template threw<cuda_error>());
    // Among three ranks, these are one exchange of all gradients: then the others need nothing more of the one that fails.
    const bool has_all = name.starts_with("recursive_doubling") || name.find(".most_parts = 2") != std::string::npos;
    for (const std::size_t other : {1u, 2u})
      CHECK_MESSAGE((has_all ? ranks[other].value.has_value() : ranks[other].template threw<communication_error>()),
                    ranks[other].description());
  });
}

TEST_CASE("a device is lost, and there is no memory to say so: the exchange has been made, and is not made again") {
  const auto ranks = on_ranks(2, [](const thread_communicator& comm) {
    const stream queue;
    const cuda_space exec(queue);
    const device_array<float> mine({1}), theirs({0});
    const int peer = 1 - comm.rank();
    const outgoing out{peer, std::as_bytes(mine.all()), memory_kind::space};
    const incoming in{peer, std::as_writable_bytes(theirs.all()), memory_kind::space};
    bool is_told = false;
    std::optional<failing_allocations> short_of_memory;
    try {
      emulated_cuda::break_device(comm.rank() == 0);
      if (comm.rank() == 0) short_of_memory.emplace(0);
      comm.exchange(exec, std::span(&out, 1), std::span(&in, 1));
    } catch (const communication_error&) {
      is_told = true;
    }
    emulated_cuda::break_device(false);
    CHECK((!short_of_memory || short_of_memory->any()));
    short_of_memory.reset();
    comm.exchange(exec, std::span(&out, 1), std::span(&in, 1));
    return std::pair(is_told, theirs.values());
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(rank.value->first);
    CHECK(rank.value->second == std::vector<float>{1});
  }
}

TEST_CASE("in the plan's own buffer nothing is allocated from the second run on, and little is waited for") {
  const auto ranks = on_ranks(1, [&](const thread_communicator& comm) {
    const stream queue;
    auto plan = plan_allreduce<float>(cuda_space(queue), comm, segments{300000});
    const std::vector<float> values(300000, 1);
    plan.space().transfer(values.data(), plan.buffer().data(), plan.buffer().size_bytes());
    plan();
    const auto before = emulated_cuda::count();
    plan();
    const auto after = emulated_cuda::count();
    CHECK(after.allocations == before.allocations);
    CHECK(after.host_waits - before.host_waits < 20);
    return 0;
  });
  CHECK_MESSAGE(ranks[0].value, ranks[0].description());
}
#endif

TEST_CASE("a plan: its buffer is memory of the device, and memory of the host is refused on all ranks") {
  const segments cut{5000};
  const auto gradients = random_gradients<float>(3, cut.total(), 8);
  const auto ranks = on_ranks(3, [&](const thread_communicator& comm) {
    const stream queue;
    const cuda_space exec(queue);
    auto plan = plan_allreduce<float>(exec, comm, cut);
    CHECK(exec.can_reach(plan.buffer().data()));
    exec.transfer(gradients[static_cast<std::size_t>(comm.rank())].data(), plan.buffer().data(),
                  plan.buffer().size_bytes());
    plan();
    std::vector<float> in_place(cut.total());
    exec.transfer(plan.buffer().data(), in_place.data(), plan.buffer().size_bytes());
    exec.fence();
    const device_array<float> own(gradients[static_cast<std::size_t>(comm.rank())]);
    plan(own.all());
    const auto values = own.values();
    for (std::size_t x = 0; x < values.size(); ++x) CHECK(values[x] == doctest::Approx(in_place[x]).epsilon(1e-5));
    return 0;
  });
  for (const auto& rank : ranks) CHECK_MESSAGE(rank.value, rank.description());
  if (detail::cuda::attribute(cudaDevAttrPageableMemoryAccess, 0) != 0) return;
  const auto refused = on_ranks(2, [&](const thread_communicator& comm) {
    const stream queue;
    std::vector<float> on_host(cut.total());
    const device_array<float> fine(on_host);
    adasum_allreduce(cuda_space(queue), comm, comm.rank() == 1 ? std::span<float>(on_host) : fine.all());
    return 0;
  });
  CHECK(refused[1].message_of<error>().value_or("").find("does not lie in memory") != std::string::npos);
  CHECK(refused[0].threw<error>());
}

}  // namespace test_of_communicators_device
