// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types with every optional member that core/concepts.hpp names, in every public call; and what each of these is for.
#include <doctest/doctest.h>

#include <adasum/core/space_members.hpp>
#include <adasum/schedules/automatic.hpp>

#include <initializer_list>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "support/complete_types.hpp"
#include "support/every_call.hpp"

namespace test_of_core_concepts_complete {

using namespace adasum;
using namespace adasum::test;

namespace {

void check_asked(const question_counts& asked, std::initializer_list<asked_for> list) {
  for (const auto what : list) {
    CAPTURE(static_cast<int>(what));
    CHECK(asked.of(what) > 0);
  }
}

struct space_in_rounds : complete_space {
  using complete_space::complete_space;
};

/// function(communicator) on each of `size` ranks; what the first returns.
template <class Function>
auto on_complete_ranks(int size, const question_counts& asked, const Function& function) {
  return results_of(on_each(group_of<complete_communicator>(size, asked), function)).front();
}

/// serial_space but for one member.
struct own_measure : serial_space {
  int* calls;
  explicit own_measure(int* counter) : calls(counter) {}
  friend bool operator==(const own_measure&, const own_measure&) = default;
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    ++*calls;
    serial_space::measure(window, vectors, gram);
  }
};

}  // namespace
}  // namespace test_of_core_concepts_complete

template <>
inline constexpr std::size_t adasum::detail::own_round_bytes<test_of_core_concepts_complete::space_in_rounds> = 100;

namespace test_of_core_concepts_complete {

TEST_CASE("calls of one process ask a space and a rule for all that they may offer") {
  const question_counts asked;
  run_every_local_call<float>(complete_space(asked), complete_pairwise_rule{asked}, complete_gram_rule{asked});
  CHECK(asked.of(asked_for::degree) == 0);
  run_every_local_call<double>(complete_space(asked), complete_pairwise_rule{asked}, complete_gram_rule{asked});
  // Floats that cancel.
  std::vector<float> a(40, 1), b(40, -1), out(40);
  CHECK(combine(complete_space(asked), std::vector{a, b}, out).recombined_segments() == 1);
  // Many vectors.
  std::vector<float> sum(1024);
  combine(complete_space(asked), random_gradients<float>(16, 1024, 1), sum);
  check_asked(asked, {asked_for::for_recombining, asked_for::measure_in_double, asked_for::mix_in_double,
                      asked_for::can_reach, asked_for::whole_model, asked_for::degree});
}

TEST_CASE("calls among ranks ask a space, a rule, a communicator and a schedule for all that they may offer") {
  const question_counts asked;
  for (const int size : {1, 2, 4}) {
    CAPTURE(size);
    const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), call_cut.total(), 5);
    on_complete_ranks(size, asked, [&](const complete_communicator& comm) {
      const complete_space space(asked);
      const complete_schedule order(asked);
      run_every_collective_call<float>(space, comm, complete_pairwise_rule{asked}, order, gradients);
      run_every_collective_call<float>(space, comm, complete_gram_rule{asked}, order, gradients);
      auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
      combine_allreduce(space, comm, gradient, order, options{.wire = wire_format::bfloat16});
      return true;
    });
  }
  check_asked(asked, {asked_for::copy_to_16_bits, asked_for::copy_from_16_bits, asked_for::can_reach,
                      asked_for::whole_model, asked_for::state, asked_for::uses_shared_memory,
                      asked_for::stages_in_place, asked_for::parameters, asked_for::schedule_parameters});
}

TEST_CASE("a rank that waits in shared memory asks whether the other has left, and lets messages move") {
  const question_counts asked;
  on_complete_ranks(2, asked, [&](const complete_communicator& comm) {
    // Without the check, whose messages would be waited for.
    auto plan = plan_allreduce<float>(complete_space(asked), comm, 100, complete_schedule(asked),
                                      options{.check_agreement = false});
    std::vector<float> gradient(100, 1);
    plan(gradient);
    if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    plan(gradient);
    return true;
  });
  check_asked(asked, {asked_for::has_left, asked_for::progress});
}

TEST_CASE("a space of a user measures in one round; one that works from caches, in several") {
  const question_counts asked;
  const auto g = random_gradients<float>(2, 15, 3);
  std::vector<float> out(15);
  combine(complete_space(asked), g, out, segments{5, 5, 5});
  CHECK(asked.of(asked_for::measure) == 1);
  combine(space_in_rounds(asked), g, out, segments{5, 5, 5});
  CHECK(asked.of(asked_for::measure) == 1 + 2);  // 40 bytes of gradients in each segment, at most 100 in a round
}

TEST_CASE("a space that cannot reach an address") {
  const question_counts asked;
  const std::vector<double> a(1);
  std::vector<double> out(1);
  const std::span unreachable(&complete_space::unreachable(), 1);
  CHECK_THROWS_WITH_AS(adasum_pair(complete_space(asked), a, unreachable, out), doctest::Contains("can reach"),
                       bad_input);
}

TEST_CASE("what stays away is refused: 16 bits on their way, from a space that cannot round to them") {
  const auto office = std::make_shared<post_office>(1);
  const minimal_communicator comm(office, 0);
  std::vector<float> gradient(3);
  CHECK_THROWS_WITH_AS(combine_allreduce(minimal_space<float>(1), comm, gradient, minimal_schedule(1),
                                         options{.wire = wire_format::binary16}),
                       doctest::Contains("options::wire"), bad_input);
}

TEST_CASE("rules: numbers of segments, fallbacks, one set of weights for the whole model") {
  const question_counts asked;
  const auto g = random_gradients<double>(3, call_cut.total(), 3);
  std::vector<double> out(call_cut.total());
  complete_gram_rule whole_model{asked}, per_segment{asked, true};
  CHECK(combine(serial_space{}, g, out, whole_model, call_cut).fallbacks() == 0);
  CHECK(combine(serial_space{}, g, out, whole_model, call_cut).fallbacks() == 1);
  CHECK(whole_model.numbers == std::vector<std::size_t>{0, 0});
  CHECK(combine(serial_space{}, g, out, per_segment, call_cut).fallbacks() == 2);
  CHECK(per_segment.numbers == std::vector<std::size_t>{0, 1, 2, 3});
  const options unmeasured{.measure = measuring::when_needed};
  CHECK(combine(serial_space{}, g, out, whole_model, call_cut, unmeasured).measured());
  CHECK_FALSE(combine(serial_space{}, g, out, complete_pairwise_rule{asked}, call_cut, unmeasured).measured());
}

TEST_CASE(
    "a schedule of the user's does what automatic does: in place in a plan, by messages in a call that keeps none") {
  const question_counts asked;
  const auto gradients = random_gradients<double>(4, 100, 7);
  struct outcome {
    std::vector<double> by_message, in_place;
    std::string name_in_place;
    std::size_t sent_by_message, sent_in_place;
  };
  const auto run = [&](const auto& schedule) {
    return on_complete_ranks(4, asked, [&](const complete_communicator& comm) {
      outcome found;
      const auto& mine = gradients[static_cast<std::size_t>(comm.rank())];
      found.by_message = found.in_place = mine;
      const options choices{.check_agreement = false, .keep_plan = false};
      const auto single = adasum_allreduce(serial_space{}, comm, found.by_message, schedule, choices);
      found.sent_by_message = single.bytes_sent();
      auto plan = plan_allreduce<double>(serial_space{}, comm, 100, schedule, choices);
      const auto& report = plan(found.in_place);
      found.name_in_place = report.schedule();
      found.sent_in_place = report.bytes_sent();
      return found;
    });
  };
  const auto mine = run(complete_schedule(asked)), library = run(schedules::automatic{});
  CHECK(mine.name_in_place == "complete schedule");
  CHECK(library.name_in_place == "shared_memory");
  CHECK(mine.sent_by_message > 0);
  CHECK(mine.sent_in_place == library.sent_in_place);
  CHECK(mine.sent_in_place < mine.sent_by_message);
  require_near<double>(mine.by_message, library.by_message);
  require_near<double>(mine.in_place, library.in_place);
}

TEST_CASE("a schedule's order of the gradients") {
  const auto gradients = random_gradients<double>(3, 10, 7);
  const auto found = on_complete_ranks(3, question_counts(), [&](const complete_communicator& comm) {
    auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
    const auto about = combine_allreduce(serial_space{}, comm, gradient, reversed_schedule{});
    return std::pair(gradient, about);
  });
  std::vector<double> folded(10);
  const std::vector reversed(gradients.rbegin(), gradients.rend());
  const auto expected = combine(serial_space{}, reversed, folded);
  require_near<double>(found.first, folded);
  for (std::size_t r = 0; r < 3; ++r) CHECK(found.second.weight(r, 0) == doctest::Approx(expected.weight(2 - r, 0)));
}

TEST_CASE("a space that replaces one member of serial_space is asked for that one") {
  int calls = 0;
  const own_measure space(&calls);
  const auto g = random_gradients<float>(2, 50, 1);
  std::vector<float> out(50), expected(50);
  const auto check_called = [&](const auto& call) {
    const int before = calls;
    call();
    CHECK(calls > before);
  };
  adasum_pair(serial_space{}, g[0], g[1], expected);
  check_called([&] { adasum_pair(space, g[0], g[1], out); });
  CHECK(out == expected);
  check_called([&] { adasum_tree(space, g, out); });
  CHECK(out == expected);
  check_called([&] {
    auto total = plan_accumulator<float>(space, 50);
    total.add(g[0]);
    total.add(g[1]);
    out.assign(total.gradient().begin(), total.gradient().end());
  });
  CHECK(out == expected);
  check_called([&] {
    on_ranks(2, [&](const thread_communicator& comm) {
      int own_calls = 0;
      const own_measure own_space(comm.rank() == 0 ? &calls : &own_calls);
      auto gradient = g[static_cast<std::size_t>(comm.rank())];
      adasum_allreduce(own_space, comm, gradient);
      CHECK(gradient == expected);
      return true;
    });
  });
}

}  // namespace test_of_core_concepts_complete
