// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedules/all_to_all.hpp>
#include <adasum/schedules/automatic.hpp>
#include <adasum/schedules/cheapest.hpp>
#include <adasum/schedules/choice.hpp>
#include <adasum/schedules/cost.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/schedules/recursive_halving.hpp>
#include <adasum/schedules/shared_memory.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace test_of_schedules_automatic {

namespace detail = adasum::detail;

using adasum::schedule_input;
using adasum::shared_memory_use;
using namespace adasum::schedules;

namespace {

constexpr std::size_t float_size = 4;

schedule_input floats(std::size_t length) { return {length, float_size, 1, true}; }

}  // namespace

TEST_CASE("automatic runs what it says") {
  const auto same = [](const auto& order, int size, const schedule_input& what) {
    CHECK(automatic{}.chosen_name(size, what) == order.name);
    for (int rank = 0; rank < size; ++rank) {
      const auto chosen = automatic{}.stages(rank, size, what), expected = order.stages(rank, size, what);
      REQUIRE(chosen.size() == expected.size());
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        CHECK(chosen[i].members == expected[i].members);
        CHECK(chosen[i].parts == expected[i].parts);
      }
    }
  };
  const schedule_input few{10, 4, 1, true}, many{1'000'000, 4, 1, true}, not_pairwise{10, 4, 1, false};
  same(recursive_doubling{.radix = 4}, 4, few);
  same(recursive_halving{}, 2, many);
  same(recursive_halving{.radix = 4}, 4, many);
  same(all_to_all{}, 4, not_pairwise);
  same(recursive_halving{}, 7, many);
  const schedule_input middle{16'000, 4, 1, true};
  const auto chosen = detail::choose_schedule(64, middle);
  same(recursive_halving{chosen.radix, chosen.most_parts}, 64, middle);
}

TEST_CASE("automatic works in place where that pays, and only if it may") {
  const auto use = [](automatic order, int size, schedule_input input) {
    return order.uses_shared_memory(size, input);
  };
  const auto long_ones = floats(1 << 20);
  CHECK(use({}, 4, long_ones) == shared_memory_use::preferred);
  CHECK(use({.in_place = false}, 4, long_ones) == shared_memory_use::none);
  CHECK(use({.follows_nodes = false}, 4, long_ones) == shared_memory_use::none);  // other placements share none
  CHECK(use({}, 1, long_ones) == shared_memory_use::buffer_if_all);
  // By the model beyond 16 ranks: while gradients are in the caches.
  for (const int size : {16, 17, 24, 48, 64, 96, 128, 256})
    for (const std::size_t bytes : {4u << 10, 64u << 10, 1u << 20, 4u << 20}) {
      CAPTURE(size);
      CAPTURE(bytes);
      const bool pays = size > 16 || bytes > (4u << 10);  // of 16 ranks the Gram matrices are larger than 4 KiB
      CHECK((use({}, size, floats(bytes / float_size)) == shared_memory_use::preferred) == pays);
    }
  CHECK(use({}, 64, floats(1 << 24)) == shared_memory_use::buffer_if_all);
  auto once = long_ones;
  once.once = true;  // making the memory takes longer than one reduction
  CHECK(use({}, 4, once) == shared_memory_use::buffer_if_all);
  // The Gram matrices of 4 ranks: 10 · 8 · 4 bytes for each segment.
  CHECK(use({}, 4, {800'000, 4, 10'000, true}) == shared_memory_use::preferred);
  CHECK(use({}, 4, {799'999, 4, 10'000, true}) == shared_memory_use::buffer_if_all);
}

TEST_CASE("automatic in memory that all ranks share: up to eight in one stage, more by the levels that cost least") {
  const auto members = [](int size, schedule_input what) {
    what.in_place = true;
    std::vector<std::size_t> found;
    for (const auto& one : automatic{}.stages(0, size, what)) found.push_back(one.members.size());
    return found;
  };
  using numbers = std::vector<std::size_t>;
  const auto long_ones = floats(1 << 20);
  for (int size = 2; size <= 8; ++size) CHECK(members(size, long_ones) == numbers{static_cast<std::size_t>(size)});
  CHECK(members(64, long_ones) == numbers{4, 4, 4});                   // less arithmetic than 8 · 8
  CHECK(members(64, floats(4 << 10)) == numbers{8, 8});                // fewer barriers
  CHECK(members(97, long_ones) == numbers{97});                        // nobody is folded
  CHECK(members(64, {1 << 20, float_size, 1, false}) == numbers{64});  // the whole Gram matrix
  for (const int size : {9, 16, 24, 48, 64, 96, 100, 128})
    for (const std::size_t length : {2000u, 100'000u, 10'000'000u}) {
      CAPTURE(size);
      CAPTURE(length);
      const auto time = [&](const shared_memory& order) {
        return seconds(in_place_cost(size, floats(length), order).in_buffer(), machine{});
      };
      for (const std::size_t radix : {2u, 4u, 8u, 16u, 128u})
        CHECK(time(detail::levels_in_place(size, floats(length))) <= time(shared_memory{radix}));
    }
}

TEST_CASE("automatic: two ranks as measured on one node, more by the model") {
  using kind = detail::choice::kind;
  const auto choose = [](int size, std::size_t bytes) {
    return detail::choose_schedule(size, floats(bytes / float_size)).which;
  };
  CHECK(choose(2, 8 << 10) == kind::doubling);
  CHECK(choose(2, (8 << 10) + 4) == kind::halving);
  for (const int size : {3, 5, 6, 7, 24, 100, 1000}) CHECK(choose(size, 1 << 10) == kind::doubling);  // always
  CHECK(choose(4, 16 << 10) == kind::doubling);                                                       // latency
  CHECK(choose(4, 1 << 20) == kind::halving);                                         // one stage in place of two
  for (const int size : {3, 5, 6, 7}) CHECK(choose(size, 1 << 20) == kind::halving);  // the one stage of all_to_all
  for (const int size : {11, 13, 31, 61}) {  // folding would send the whole gradient twice more
    CAPTURE(size);
    CHECK(choose(size, 1 << 10) == kind::doubling);
    const auto what = floats((1 << 20) / float_size);
    CHECK(adasum::is_one_stage_of_all(automatic{}.stages(0, size, what), size));
  }
  CHECK(detail::choose_schedule(22, floats(1 << 18)).radix == 11);  // 2 · 11
  CHECK(detail::choose_schedule(74, floats(1 << 22)).radix == 37);
  for (const int size : {16, 64, 100, 256, 1000, 1024}) {
    CAPTURE(size);
    CHECK(choose(size, 1 << 10) == kind::doubling);  // latency
    CHECK(choose(size, 64 << 10) == kind::halving);  // fewer sums than halving
    // Less arithmetic than wider ones: four vectors are measured and mixed in less time than three pairs.
    CHECK(detail::choose_schedule(size, floats((64 << 20) / float_size)).radix == 4);
  }
  // Nobody is folded, so the bytes are those of a sum; what is measured and mixed is as for powers of two.
  for (const int size : {24, 48, 96, 100, 112, 480, 1000}) {
    CAPTURE(size);
    const auto time = [](int ranks) { return seconds(cost_of(automatic{}, 0, ranks, floats(1 << 22))); };
    CHECK(time(size) <= 1.06 * time(1024));
  }
  CHECK(detail::choose_schedule(16, {1000, float_size, 1, false}).which ==
        kind::all_to_all);  // another rule than a pairwise one
}

TEST_CASE("automatic: two ranks on two nodes, by the model of a network") {
  const auto chosen_for = [](automatic order, std::size_t bytes, bool apart) {
    auto what = floats(bytes / float_size);
    what.apart = apart;
    return order.chosen_name(2, what);
  };
  // Halving needs two more exchanges: of 1.2 µs, as long as the arithmetic of 150 KB that it saves.
  CHECK(chosen_for({}, 16 << 10, true) == recursive_doubling::name);
  CHECK(chosen_for({}, 64 << 10, true) == recursive_doubling::name);
  CHECK(chosen_for({}, 1 << 20, true) == recursive_halving::name);
  CHECK(chosen_for({}, 16 << 10, false) == recursive_halving::name);
  CHECK(chosen_for({.follows_nodes = false}, 16 << 10, true) == recursive_halving::name);
  auto slow = machine{};  // a network on which nothing but bytes counts: both send as many
  slow.across = {.latency = 1e-9, .per_message = 1e-9, .per_byte = 1e-8};
  CHECK(chosen_for({.on = slow}, 16 << 10, true) == recursive_halving::name);
}

TEST_CASE("automatic: between doubling and halving, halving at the first levels and doubling above") {
  using kind = detail::choice::kind;
  for (const int size : {64, 96, 256, 1000, 1024}) {
    CAPTURE(size);
    const auto what = floats((64 << 10) / float_size);
    const auto chosen = detail::choose_schedule(size, what);
    CHECK(chosen.which == kind::halving);
    CHECK(chosen.most_parts < static_cast<std::size_t>(size));
    const auto time = [&](const auto& order) { return seconds(cost_of(order, 0, size, what)); };
    CHECK(time(automatic{}) < 0.98 * time(recursive_doubling{}));
    for (const auto radix : detail::radices(size)) CHECK(time(automatic{}) < 0.98 * time(recursive_halving{radix}));
  }
  // Long gradients are cut among all ranks, or all but those that meet last.
  const auto parts = detail::choose_schedule(64, floats(100'000'000 / float_size)).most_parts;
  CHECK(parts >= 16);
}

TEST_CASE("automatic: very short gradients in fewer exchanges of more messages, whatever the segments") {
  for (const int size : {4, 16, 64, 100, 1024}) {
    CAPTURE(size);
    const schedule_input one{256, float_size, 1, true}, many{256, float_size, 200, true};
    CHECK(detail::choose_schedule(size, one).which == detail::choice::doubling);
    CHECK(detail::choose_schedule(size, one).radix == 4);
    CHECK(detail::choose_schedule(size, one) == detail::choose_schedule(size, many));
  }
  for (const int size : {2, 3, 5, 7}) CHECK(detail::choose_schedule(size, floats(256)).radix == 2);
  const auto of_costly_messages = detail::choose_schedule(64, floats(256), machine{.across = {.per_message = 5e-6}});
  CHECK(of_costly_messages.which == detail::choice::doubling);
  CHECK(of_costly_messages.radix == 2);
}

TEST_CASE("automatic: rules of all gradients at once by one stage of all ranks") {
  for (const int size : {2, 5, 64, 1024})
    for (const std::size_t length : {200u, 1u << 20}) {
      const schedule_input what{.length = length, .element_size = float_size, .segments = 3, .along_tree = false};
      CHECK(detail::choose_schedule(size, what).which == detail::choice::all_to_all);
      CHECK(adasum::is_one_stage_of_all(automatic{}.stages(0, size, what), size));
    }
}

TEST_CASE("automatic compares the radices that make different levels") {
  using numbers = std::vector<std::size_t>;
  CHECK(detail::radices(2) == numbers{2});
  CHECK(detail::radices(1024) == numbers{2, 4, 8, 16, 32});
  CHECK(detail::radices(24) == numbers{2, 4, 6, 8, 24});
  CHECK(detail::radices(96) == numbers{2, 4, 6, 8, 12, 16, 32});
  CHECK(detail::radices(100) == numbers{2, 4, 20});
  CHECK(detail::radices(1000) == numbers{2, 4, 8, 25});
  CHECK(detail::radices(22) == numbers{2, 11, 22});
  CHECK(detail::radices(74) == numbers{2, 37});
  CHECK(detail::radices(127) == numbers{2, 127});
  CHECK(detail::radices(131) == numbers{2});
}

TEST_CASE("automatic takes the cheapest of its candidates on any machine") {
  // Where arithmetic is free, the widest radix that messages allow; where only bytes count, anything but doubling.
  const machine free_arithmetic{.across = {.per_message = 0}, .per_pair_element = 0, .per_product = 0, .per_term = 0};
  CHECK(detail::choose_schedule(64, floats(1 << 20), free_arithmetic).which == detail::choice::halving);
  const machine slow_processor{.per_product = 1e-6, .per_term = 1e-6};
  CHECK(detail::choose_schedule(64, floats(1 << 16), slow_processor).which == detail::choice::halving);
  // Many segments: the Gram matrices of wide stages are longer messages than the gradient.
  const schedule_input layers{1 << 18, float_size, 5000, true};
  const auto chosen = detail::choose_schedule(64, layers);
  CHECK(chosen.radix == 2);
}

TEST_CASE("automatic on a machine that was measured: messages by what links cost") {
  using kind = detail::choice::kind;
  const auto chosen = [](const machine& on, int size, std::size_t bytes) {
    return detail::choose_schedule(size, floats(bytes / float_size), on).which;
  };
  machine on{.across = {.latency = 1e-6, .per_byte = 1e-10}};
  CHECK(chosen(on, 2, 4 << 10) == kind::doubling);
  on.across.eager_bytes = 2 << 10;  // halves of it are sent at once
  on.across.handshake = 5e-6;
  CHECK(chosen(on, 2, 4 << 10) == kind::halving);
  CHECK(chosen(on, 2, 8 << 10) == kind::doubling);  // here they are not
  on = {.across = {.latency = 50e-6, .per_byte = 1e-9}};
  CHECK(chosen(on, 2, 64 << 10) == kind::doubling);
  CHECK(detail::choose_schedule(2, floats(16 << 10)).which == kind::halving);  // without a machine, as before
  on.per_pair_element = 100e-9;                                                // by halving, each rank does half of it
  CHECK(chosen(on, 2, 64 << 10) == kind::halving);
  CHECK(chosen({.across = {.latency = 50e-6, .per_byte = 1e-9}}, 4, 64 << 10) == kind::doubling);
  CHECK(chosen({.across = {.latency = 50e-6, .per_byte = 100e-9}}, 4, 64 << 10) == kind::halving);
  for (const int size : {2, 3, 8})  // no part is empty, whatever messages cost
    CHECK(chosen({.across = {.latency = 0, .per_message = 0}}, size, float_size * static_cast<std::size_t>(size - 1)) ==
          kind::doubling);
}

TEST_CASE("automatic on a machine that was measured: copies to shared memory where these cost less than messages") {
  const auto use = [](const machine& on, int size, const schedule_input& what) {
    return automatic{.on = on}.uses_shared_memory(size, what);
  };
  machine on{.across = {.per_byte = 0.2e-9}, .shared = {.per_byte = 0.01e-9}};
  for (const std::size_t length : {100u, 10'000u, 4'000'000u})
    for (const int size : {2, 5, 16}) CHECK(use(on, size, floats(length)) == shared_memory_use::preferred);
  for (const int size : {17, 64, 96}) CHECK(use(on, size, floats(10'000)) == shared_memory_use::preferred);
  on.shared.per_byte.at.back() = 0.2e-9;  // where nothing fits into the caches
  CHECK(use(on, 2, floats(4'000'000)) == shared_memory_use::buffer_if_all);
  CHECK(use(on, 2, floats(10'000)) == shared_memory_use::preferred);
  on.shared.barrier = 1e-3;
  CHECK(use(on, 2, floats(10'000)) == shared_memory_use::buffer_if_all);
  CHECK(automatic{}.uses_shared_memory(2, floats(4'000'000)) == shared_memory_use::preferred);
  auto once = floats(100);
  once.once = true;
  CHECK(use({.shared = {.barrier = 0, .per_byte = 0}}, 2, once) == shared_memory_use::buffer_if_all);
}

TEST_CASE("automatic on a machine that was measured: nodes") {
  const std::vector<int> nodes{0, 0, 1, 1};
  const auto chosen = [&](const machine& on, std::size_t length) {
    auto what = floats(length);
    what.nodes = nodes;
    return detail::choose_schedule(4, what, on).by_node;
  };
  CHECK(chosen({.across = {.per_byte = 8e-9}}, 10'000) == carried::shard);
  CHECK(chosen({.inside = {.latency = 1e-3}}, 10'000) == carried::whole);
}

TEST_CASE("automatic across two nodes of two ranks: short parts are exchanged whole, longer ones halved once more") {
  const std::vector<int> nodes{0, 0, 1, 1};
  const auto chosen = [&](std::size_t length) {
    auto what = floats(length);
    what.nodes = nodes;
    what.in_place = true;
    return detail::choose_schedule(4, what);
  };
  CHECK(chosen(1024) == detail::choice{detail::choice::doubling, 2, carried::shard});
  CHECK(chosen(std::size_t{1} << 22).which == detail::choice::halving);
}

TEST_CASE("automatic tells machines apart, and refuses one that cannot be") {
  const automatic none, defaults{.on = machine{}}, other{.on = machine{.across = {.latency = 2e-6}}};
  CHECK_FALSE(none == defaults);
  CHECK_FALSE(defaults == other);
  CHECK(defaults == automatic{.on = machine{}});
  CHECK(none.parameters() != defaults.parameters());
  CHECK(defaults.parameters() != other.parameters());
  CHECK(none.parameters() != automatic{.in_place = false}.parameters());
  CHECK(none.parameters() != automatic{.follows_nodes = false}.parameters());
  const automatic bad{.on = machine{.per_term = -1}};
  CHECK_THROWS_WITH_AS(bad.stages(0, 2, floats(10)), doctest::Contains("per_term"), adasum::bad_input);
}

}  // namespace test_of_schedules_automatic
