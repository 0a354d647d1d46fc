// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nccl_communicator among threads with a stream each: of the emulated NCCL.
#include <adasum/adasum.hpp>
#include <adasum/communicators/nccl.hpp>
#include <adasum/enqueued_plan.hpp>
#include <adasum/exec/cuda/nvtx.hpp>

#include <algorithm>

#include "../../examples/12_routed_communicator/routed_communicator.hpp"
#include "emulated_cuda/runtime.hpp"
#include "support/allocations.hpp"
#include "support/device.hpp"
#include "support/nccl_group.hpp"
#include "support/random_gradients.hpp"
#include "support/ranks.hpp"
#include "support/reduction.hpp"
#include "support/schedules.hpp"

namespace test_of_communicators_nccl {

using namespace adasum;
using namespace adasum::test;
using example::routed_communicator;

namespace {

static_assert(stream_ordered_communicator<nccl_communicator, cuda_space>);
static_assert(!stream_ordered_communicator<thread_communicator, cuda_space>);

}  // namespace

TEST_CASE_TEMPLATE("every schedule, enqueued: the oracle's result, the same bits on all ranks", T, float, __half) {
  std::size_t turn = 0;
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    const std::size_t length = size == 3 ? 9001 : 1000;
    const auto kind = all_gradient_kinds[++turn % all_gradient_kinds.size()];
    const segments cut(random_segments(length, 1 + turn % 4, turn));
    const auto gradients = random_gradients<T>(static_cast<std::size_t>(size), length, turn, kind);
    const auto expected = expectation::of<T>(rules::adasum{}, gradients, cut);
    CAPTURE(size);
    for_each_message_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      const auto ranks = on_nccl(size, [&](const nccl_communicator& comm, const cuda_space& exec) {
        const device_array<T> gradient(gradients[static_cast<std::size_t>(comm.rank())]);
        enqueue_adasum_allreduce(exec, comm, gradient.all(), cut, order);
        exec.fence();
        return gradient.values();
      });
      for (const auto& rank : ranks) {
        REQUIRE_MESSAGE(rank.value, rank.description());
        CHECK(same_bits(*rank.value, *ranks[0].value));
      }
      CHECK(worst_error_over_bound(*ranks[0].value, expected.exact.values, expected.bounds, cut) <= 1);
    });
  }
}

TEST_CASE("rules along the tree know how many gradients a side holds; nodes with a rule of their own") {
  const segments cut{500, 20};
  const auto gradients = random_gradients<float>(6, cut.total(), 2);
  const auto reduce = [&](const auto& rule, const auto& order) {
    const auto ranks = on_nccl(6, [&](const nccl_communicator& comm, const cuda_space& exec) {
      const device_array<float> gradient(gradients[static_cast<std::size_t>(comm.rank())]);
      auto plan = plan_enqueued_allreduce<float>(exec, comm, cut, rule, order);
      plan(gradient.all());
      exec.fence();
      return gradient.values();
    });
    for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
    return *ranks[5].value;
  };
  for (const auto& mean :
       {reduce(rules::mean{}, schedules::recursive_halving{}), reduce(rules::mean{}, schedules::all_to_all{})})
    for (std::size_t x = 0; x < cut.total(); ++x) {
      double sum = 0;
      for (const auto& gradient : gradients) sum += gradient[x];
      CHECK(mean[x] == doctest::Approx(sum / 6).epsilon(1e-5).scale(1));
    }
  const schedules::hierarchical nodes{{0, 0, 1, 1, 1, 0}, rules::mean{}};
  const auto on_stream = reduce(rules::adasum{}, nodes);
  const auto host = on_ranks(6, [&](const thread_communicator& comm) {
    auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
    adasum_allreduce(serial_space{}, comm, gradient, cut, nodes);
    return gradient;
  });
  for (std::size_t x = 0; x < cut.total(); ++x)
    CHECK(on_stream[x] == doctest::Approx((*host[0].value)[x]).epsilon(1e-4).scale(1));
}

TEST_CASE("a plan is enqueued without waiting, and allocates nothing from the second time on") {
  const segments cut{5000, 3};
  const auto gradients = random_gradients<float>(4, cut.total(), 2);
  for (const int size : {2, 4}) {
    std::atomic<int> arrived = 0;
    const auto meet = [&](int turn) {
      ++arrived;
      while (arrived < turn * size) std::this_thread::yield();
    };
    const auto ranks = on_nccl(size, [&](const nccl_communicator& comm, const cuda_space& exec) {
      const device_array<float> gradient(gradients[static_cast<std::size_t>(comm.rank())]);
      auto plan = plan_enqueued_allreduce<float>(exec, comm, cut, rules::adasum{}, schedules::recursive_halving{},
                                                 checked(false));
      plan(gradient.all());
      exec.fence();
      meet(1);
      const auto before = emulated_cuda::count();
      meet(2);
      for (int turn = 0; turn < 5; ++turn) plan(gradient.all());
      meet(3);
      const auto after = emulated_cuda::count();
      meet(4);
      exec.fence();
      return std::pair(after.host_waits - before.host_waits, after.allocations - before.allocations);
    });
    for (const auto& rank : ranks) {
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK(rank.value->first == 0);
      CHECK(rank.value->second == 0);
    }
  }
}

TEST_CASE("enqueue_adasum_allreduce, without a plan, does not make the host wait either") {
  const segments cut{5000, 3};
  const auto ranks = on_nccl(1, [&](const nccl_communicator& comm, const cuda_space& exec) {
    const device_array<float> gradient(std::vector<float>(cut.total(), 1));
    const auto before = emulated_cuda::count().host_waits;
    enqueue_adasum_allreduce(exec, comm, gradient.all(), cut, schedules::recursive_halving{}, checked(false));
    return emulated_cuda::count().host_waits - before;
  });
  REQUIRE_MESSAGE(ranks[0].value, ranks[0].description());
  CHECK(*ranks[0].value == 0);
}

TEST_CASE("adasum_allreduce waits, and gives a report: the result is there when it returns") {
  const segments cut{5000, 3};
  const auto gradients = random_gradients<float>(3, cut.total(), 6);
  const auto expected = expectation::of<float>(rules::adasum{}, gradients, cut);
  const auto ranks = results_of(on_nccl(3, [&](const nccl_communicator& comm, const cuda_space& exec) {
    const device_array<float> gradient(gradients[static_cast<std::size_t>(comm.rank())]);
    auto found = adasum_allreduce(exec, comm, gradient.all(), cut);
    const stream other;
    const cuda_space reader(other);  // which does not wait for the first stream
    std::vector<float> seen(cut.total());
    reader.transfer(gradient.all().data(), seen.data(), seen.size() * sizeof(float));
    reader.fence();
    return reduced<float>{std::move(seen), std::move(found)};
  }));
  check_same_on_all_ranks(ranks);
  check_reduced(ranks.front(), expected, cut);
}

TEST_CASE("the steps of reductions are ranges of NVTX, enqueued or not") {
  const auto ranges_of = [](bool enqueued) {
    set_tracer(nvtx_tracer());
    const auto ranks = results_of(on_nccl(2, [&](const nccl_communicator& comm, const cuda_space& exec) {
      const device_array<float> gradient(std::vector<float>(1000, 1));
      nvtx_ranges = {};
      if (enqueued)
        enqueue_adasum_allreduce(exec, comm, gradient.all());
      else
        adasum_allreduce(exec, comm, gradient.all());
      exec.fence();
      return nvtx_ranges;
    }));
    set_tracer(nullptr);
    CHECK(ranks[0].open == 0);
    return ranks[0].names;
  };
  CHECK(std::ranges::count(ranges_of(true), "combine") > 0);
  CHECK(std::ranges::count(ranges_of(false), "measure") > 0);
}

TEST_CASE("no segments at all") {
  const std::vector<std::size_t> none{0};
  const auto ranks = on_nccl(2, [&](const nccl_communicator& comm, const cuda_space& exec) {
    const device_array<float> gradient{std::vector<float>{}};
    auto plan = plan_enqueued_allreduce<float>(exec, comm, segments_view{none}, rules::adasum{},
                                               schedules::recursive_halving{});
    plan(gradient.all());
    exec.fence();
    return 0;
  });
  for (const auto& rank : ranks) CHECK_MESSAGE(rank.value, rank.description());
}

TEST_CASE("the plan with a report: any rule, notes and sums of the host through the device") {
  const segments cut{1000, 3};
  const auto gradients = random_gradients<float>(3, cut.total(), 2);
  const auto ranks = on_nccl(3, [&](const nccl_communicator& comm, const cuda_space& exec) {
    const device_array<float> gradient(gradients[static_cast<std::size_t>(comm.rank())]);
    auto found = combine_allreduce(exec, comm, gradient.all(), rules::adasum{}, cut, schedules::recursive_halving{});
    return reduced<float>{gradient.values(), std::move(found)};
  });
  const auto expected = expectation::of<float>(rules::adasum{}, gradients, cut);
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(same_findings(rank.value->found, ranks[0].value->found));
    check_reduced(*rank.value, expected, cut);
  }
}

TEST_CASE("disagreement and bad input: an error on every rank where that is checked, and nobody waits") {
  const auto refused = [](auto&& call) {
    const auto ranks = on_nccl(2, [&](const nccl_communicator& comm, const cuda_space& exec) {
      const device_array<float> gradient(std::vector<float>(100, 1));
      call(comm, exec, gradient.all());
      return 0;
    });
    CHECK(ranks[0].template threw<error>());
    CHECK(ranks[1].template threw<error>());
    return ranks[0].template message_of<error>().value_or("");
  };
  CHECK(refused([](const auto& comm, const auto& exec, auto gradient) {
          auto plan = plan_enqueued_allreduce<float>(exec, comm, segments{100}, rules::adasum{},
                                                     schedules::all_to_all{}, checked(true));
          plan(gradient.first(comm.rank() == 1 ? 99 : 100));
        }).find("99") != std::string::npos);
  CHECK(refused([](const auto& comm, const auto& exec, auto gradient) {
          const segments mine = comm.rank() == 1 ? segments{40, 60} : segments{100};
          plan_enqueued_allreduce<float>(exec, comm, mine, rules::adasum{}, schedules::all_to_all{},
                                         checked(true))(gradient);
        }).find("number of segments") != std::string::npos);
  CHECK(refused([](const auto& comm, const auto& exec, auto gradient) {
          const segments mine = comm.rank() == 1 ? segments{50} : segments{100};
          enqueue_adasum_allreduce(exec, comm, gradient, mine, schedules::all_to_all{}, checked(true));
        }).find("enqueue_adasum_allreduce: the segments hold 50 elements") != std::string::npos);
  CHECK(refused([](const auto& comm, const auto& exec, auto gradient) {
          const schedules::hierarchical nodes{std::vector<int>(comm.rank() == 1 ? 1 : 2, 0), rules::mean{}};
          plan_enqueued_allreduce<float>(exec, comm, segments{100}, rules::adasum{}, nodes, checked(true))(gradient);
        }).find("nodes are given for 1 rank") != std::string::npos);
  // Unchecked, with a report: the rank whose input is bad withholds its bytes.
  refused([](const auto& comm, const auto& exec, auto gradient) {
    auto plan = plan_allreduce<float>(exec, comm, segments{100}, rules::adasum{}, schedules::recursive_halving{},
                                      checked(false));
    plan(gradient.first(comm.rank() == 1 ? 99 : 100));
  });
  options exclude;
  exclude.nonfinite = nonfinite_policy::exclude;
  CHECK(refused([&](const auto& comm, const auto& exec, auto) {
          plan_enqueued_allreduce<float>(exec, comm, segments{100}, rules::adasum{}, schedules::all_to_all{}, exclude);
        }).find("options::nonfinite") != std::string::npos);
}

TEST_CASE("one plan in flight on a communicator: another reduction there is refused") {
  const auto ranks = on_nccl(2, [](const nccl_communicator& comm, const cuda_space& exec) {
    const device_array<float> one(std::vector<float>(100, 1)), other(std::vector<float>(100, 1));
    auto first = plan_allreduce<float>(exec, comm, 100), second = plan_allreduce<float>(exec, comm, 100);
    auto enqueued = plan_enqueued_allreduce<float>(exec, comm, 100);
    const auto copy = comm;
    first.start(one.all());
    const auto refuses = [](const auto& call) {
      CHECK_THROWS_WITH_AS(call(), doctest::Contains("another plan is in flight on this communicator"), bad_input);
    };
    refuses([&] { second.start(other.all()); });
    refuses([&] { adasum_allreduce(exec, copy, other.all()); });
    refuses([&] { enqueued(other.all()); });
    refuses([&] { plan_enqueued_allreduce<float>(exec, copy, 100); });
    refuses([&] { enqueue_adasum_allreduce(exec, comm, other.all(), checked(false)); });
    first.wait();
    second(other.all());
    enqueued(other.all());
    exec.fence();
    return 0;
  });
  for (const auto& rank : ranks) CHECK_MESSAGE(rank.value, rank.description());
}

namespace {

/// Memory of the host is short when the messages have come.
struct space_short_of_memory : cuda_space {
  using cuda_space::cuda_space;
  void fence() const {
    cuda_space::fence();
    failures_of_this_thread() = {.in_a_row = 1};
  }
};

}  // namespace

TEST_CASE("no memory to say why an exchange has failed: it has been made all the same, and is not made again") {
  const nccl_group group(2);
  const auto ranks = on_each(group.ranks(), [](const nccl_communicator& comm) {
    const stream queue;
    const bool failed = comm.rank() == 0;
    int sent = 1, received = 0;
    const outgoing out{1 - comm.rank(), std::as_bytes(std::span(&sent, 1)), memory_kind::host, failed};
    const incoming in{1 - comm.rank(), std::as_writable_bytes(std::span(&received, 1))};
    bool is_told = false;
    try {
      if (failed)
        comm.exchange(cuda_space(queue), std::span(&out, 1), std::span(&in, 1));
      else
        comm.exchange(space_short_of_memory(queue), std::span(&out, 1), std::span(&in, 1));
    } catch (const communication_error&) {
      is_told = true;
    }
    failures_of_this_thread() = {};
    return std::pair(is_told, received);
  });
  for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
  CHECK(*ranks[0].value == std::pair(false, 1));
  CHECK(*ranks[1].value == std::pair(true, 0));
}

TEST_CASE("an empty communicator can be made, copied and moved, but not used") {
  const nccl_group group(1);
  nccl_communicator comm(group[0]);
  CHECK(comm);
  const auto moved = std::move(comm);
  CHECK(moved.size() == 1);
  const stream queue;
  const cuda_space exec(queue);
  // NOLINTNEXTLINE(bugprone-use-after-move): what is left of one that was moved from is empty
  for (const auto& none : {nccl_communicator{}, nccl_communicator{nullptr}, comm}) {
    CHECK_FALSE(none);
    CHECK(none.native() == nullptr);
    const auto is_empty = doctest::Contains("adasum::nccl_communicator: this communicator is empty");
    CHECK_THROWS_WITH_AS(none.rank(), is_empty, bad_input);
    CHECK_THROWS_WITH_AS(none.size(), is_empty, bad_input);
    CHECK_THROWS_WITH_AS(none.exchange(exec, {}, {}), is_empty, bad_input);
    CHECK_THROWS_WITH_AS(none.enqueue(exec, {}, {}), is_empty, bad_input);
  }
}

TEST_CASE("inside the node by NCCL, between nodes by another communicator") {
  const std::vector<int> node_of_rank{0, 0, 1, 1, 1};
  const segments cut{700, 20};
  const auto gradients = random_gradients<float>(5, cut.total(), 4);
  const nccl_group first(2), second(3);
  const auto ranks = on_ranks(5, [&](const thread_communicator& comm) {
    const auto r = static_cast<std::size_t>(comm.rank());
    const stream queue;
    const routed_communicator routed(nccl_communicator(r < 2 ? first[r] : second[r - 2]), comm, node_of_rank);
    const device_array<float> gradient(gradients[r]);
    auto found = combine_allreduce(cuda_space(queue), routed, gradient.all(), rules::adasum{}, cut,
                                   schedules::hierarchical{node_of_rank, rules::adasum{}});
    return reduced<float>{gradient.values(), std::move(found)};
  });
  const auto host = on_ranks(5, [&](const thread_communicator& comm) {
    auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
    adasum_allreduce(serial_space{}, comm, gradient, cut, schedules::hierarchical{node_of_rank, rules::adasum{}});
    return gradient;
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(same_bits(rank.value->gradient, ranks[0].value->gradient));
    CHECK(same_findings(rank.value->found, ranks[0].value->found));
  }
  for (std::size_t x = 0; x < cut.total(); ++x)
    CHECK(ranks[0].value->gradient[x] == doctest::Approx((*host[0].value)[x]).epsilon(1e-4).scale(1));

  const auto wrong = on_ranks(2, [&](const thread_communicator& comm) {
    routed_communicator(nccl_communicator(first[0]), comm, std::vector<int>{0, 0});
    return 0;
  });
  CHECK(wrong[1].message_of<bad_input>().value_or("").find("number 1 of 2 in its node") != std::string::npos);
}

}  // namespace test_of_communicators_nccl
