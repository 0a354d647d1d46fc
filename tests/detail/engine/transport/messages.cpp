// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/error.hpp>
#include <adasum/detail/engine/transport/messages.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/schedules/all_to_all.hpp>
#include <adasum/schedules/recursive_doubling.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "support/driven_transport.hpp"
#include "support/foreign.hpp"
#include "support/ranks.hpp"

namespace test_of_detail_engine_transport_messages {

/// The transport by messages, driven through one stage by 2 or 3 ranks that are threads.

using namespace adasum;
using namespace adasum::test;

namespace {

const serial_space space;
constexpr std::size_t length = 10;

/// One rank's transport and stage.
struct messenger_of_rank {
  messenger_of_rank(const thread_communicator& comm, const stage& one, wire_format format = wire_format::same)
      : report(empty_report(comm.size())),
        by(detail::ref_to_space<float>(space), detail::ref_to_communicator(space, comm), format, sizes_of(one), report),
        bound(bound_to(by, one, static_cast<std::size_t>(comm.size()))),
        gradient(numbered<float>(comm.rank(), length)) {}

  static detail::message_sizes sizes_of(const stage& one) {
    detail::message_sizes sizes;
    sizes.include_sum(one, 4);
    sizes.include(detail::transfers_to_combine(one), 1, sizeof(float));
    sizes.include(detail::transfers_to_deliver(one, 0), 1, sizeof(float));
    return sizes;
  }
  void begin(bool posts) { by.begin_run(posts); }
  void bring(bool block = true) {
    drive(by, block, [&](std::size_t turn) { return by.bring(bound, bytes_of(gradient), turn); });
  }
  void sum(std::vector<double>& values, bool block = true) {
    drive(by, block, [&](std::size_t turn) { return by.sum(bound, values, turn); });
  }
  void deliver(bool block = true) {
    drive(by, block, [&](std::size_t turn) { return by.deliver(bound, bytes_of(gradient), turn); });
  }
  const float* vector(std::size_t i) { return elements_of<float>(by.vector(bound, i, bytes_of(gradient))); }

  detail::report_writer report;
  detail::messages by;
  detail::bound_stage bound;
  std::vector<float> gradient;
};

template <class Schedule>
stage stage_of(const Schedule& order, const thread_communicator& comm) {
  return order.stages(comm.rank(), comm.size(), {length, 4, 1, true}).front();
}

}  // namespace

TEST_CASE("slices: each rank reads its slice of all vectors, adds, and gives its slice of the result to all") {
  for (const bool posts : {false, true})
    for (const int size : {2, 3}) {
      CAPTURE(posts);
      CAPTURE(size);
      const auto ranks = results_of(on_ranks(size, [&](const thread_communicator& comm) {
        messenger_of_rank rank(comm, stage_of(schedules::all_to_all{}, comm));
        const auto part = rank.bound.part();
        bool right = true;
        for (int run = 0; run < 2; ++run) {
          rank.begin(posts);
          rank.gradient = numbered<float>(comm.rank() + run, length);
          rank.bring(!posts);
          for (int i = 0; i < size; ++i)
            for (std::size_t x = 0; x < part.size(); ++x)
              right = right && rank.vector(static_cast<std::size_t>(i))[x] ==
                                   static_cast<float>(100 * (i + run)) + static_cast<float>(part.begin + x);
          std::vector<double> values{1.0 + comm.rank(), 0.5};
          rank.sum(values, !posts);
          right = right && values == std::vector{size * (size + 1) / 2.0, size / 2.0};
          for (auto x = part.begin; x < part.end; ++x) rank.gradient[x] = -static_cast<float>(x);
          rank.deliver(!posts);
          for (std::size_t x = 0; x < length; ++x) right = right && rank.gradient[x] == -static_cast<float>(x);
        }
        return right;
      }));
      for (const bool right : ranks) CHECK(right);
    }
}

TEST_CASE("folding: the rank that waits sends everything, and gets the result with all that is known") {
  const auto ranks = results_of(on_ranks(2, [&](const thread_communicator& comm) {
    const stage folded{{0, 1}, static_cast<std::size_t>(comm.rank()), {0, 1, 2}, 1, {0, length}, {{0, length}}, {0}};
    messenger_of_rank rank(comm, folded);
    rank.begin(false);
    rank.bring();
    bool right = true;
    if (comm.rank() == 0) {
      right = std::vector(rank.vector(1), rank.vector(1) + length) == numbered<float>(1, length);
      rank.gradient.assign(length, 7);
      rank.report.row(0)[0] = {3, 0.5};
      rank.report.row(1)[0] = {4, 0.25};
      rank.report.result_norms()[0] = 5;
    }
    rank.deliver();
    const auto& found = rank.report.get();
    return right && rank.gradient == std::vector<float>(length, 7) && found.norm(0, 0) == 3 &&
           found.weight(1, 0) == 0.25 && found.result_norm(0) == 5;
  }));
  for (const bool right : ranks) CHECK(right);
}

TEST_CASE("what is known of a vector of several gradients comes along with it") {
  const auto norms = results_of(on_ranks(2, [&](const thread_communicator& comm) {
    // Rank 0 brings the combination of gradients 0 and 1, rank 1 that of gradient 2.
    const stage meeting{{0, 1}, static_cast<std::size_t>(comm.rank()), {0, 2, 3}, 2, {0, length}, {{0, 5}, {5, length}},
                        {0, 1}};
    messenger_of_rank rank(comm, meeting);
    rank.report = empty_report(3);
    rank.begin(false);
    if (comm.rank() == 0) {
      rank.report.row(0)[0] = {1.5, 1};
      rank.report.row(1)[0] = {2.5, 1};
    }
    rank.bring();
    return rank.report.get().norm(1, 0);
  }));
  CHECK(norms == std::vector{2.5, 2.5});
}

TEST_CASE("records that are joined to elements: one message, from which both arrive") {
  const auto ranks = results_of(on_ranks(3, [&](const thread_communicator& comm) {
    // Rank 0 brings the combination of gradients 0 and 1, rank 1 that of 2, 3 and 4, rank 2 gradient 5.
    const stage meeting{{0, 1, 2},   static_cast<std::size_t>(comm.rank()),   {0, 2, 5, 6}, 3,
                        {0, length}, {{0, length}, {0, length}, {0, length}}, {comm.rank()}};
    auto list = detail::transfers_to_combine(meeting, length);
    detail::message_sizes sizes;
    sizes.include(list, 1, sizeof(float));
    auto report = empty_report(6);
    const counting_communicator counted(comm);
    detail::messages by(detail::ref_to_space<float>(space), detail::ref_to_communicator(space, counted),
                        wire_format::same, sizes, report);
    auto bound = bound_to(by, meeting, 6);
    bound.to_combine = std::move(list);
    bound.record_room = detail::room_for_records(bound.to_combine.receives, 1, sizeof(float));
    auto gradient = numbered<float>(comm.rank(), length);
    bool right = true;
    for (int run = 0; run < 2; ++run) {
      for (const std::size_t leaf : {0u, 1u, 2u, 3u, 4u}) {
        const bool own = comm.rank() == (leaf < 2 ? 0 : 1);
        report.row(leaf)[0] = {own ? static_cast<double>(leaf) + 0.1 + run : -1.0, own ? 0.3 : -1.0};
      }
      by.begin_run(false);
      drive(by, true, [&](std::size_t turn) { return by.bring(bound, bytes_of(gradient), turn); });
      for (int i = 0; i < 3; ++i) {
        const auto* const vector =
            elements_of<float>(by.vector(bound, static_cast<std::size_t>(i), bytes_of(gradient)));
        right = right && std::vector(vector, vector + length) == numbered<float>(i, length);
      }
      for (const std::size_t leaf : {0u, 1u, 2u, 3u, 4u})
        right = right && report.get().norm(leaf, 0) == static_cast<double>(leaf) + 0.1 + run &&
                report.get().weight(leaf, 0) == 0.3;
    }
    return right && counted.sent().messages == 4;  // to two ranks, twice
  }));
  for (const bool right : ranks) CHECK(right);
}

TEST_CASE("16 bits: a vector that all ranks combine whole is the same on its own rank as on the others") {
  const float third = 1.0f / 3;
  const auto ranks = results_of(on_ranks(2, [&](const thread_communicator& comm) {
    messenger_of_rank rank(comm, stage_of(schedules::recursive_doubling{}, comm), wire_format::bfloat16);
    rank.gradient.assign(length, comm.rank() == 0 ? third : 2 * third);
    rank.begin(false);
    rank.bring();
    return std::vector{rank.vector(0)[3], rank.vector(1)[3]};
  }));
  CHECK(ranks[0] == ranks[1]);
  CHECK(ranks[0][0] != third);
  CHECK(ranks[0][0] == doctest::Approx(third).epsilon(0x1p-8));
}

TEST_CASE("bytes are counted by run: elements, records and sums that this rank has sent") {
  const auto bytes = results_of(on_ranks(2, [&](const thread_communicator& comm) {
    messenger_of_rank rank(comm, stage_of(schedules::all_to_all{}, comm));
    for (int run = 0; run < 2; ++run) {
      rank.begin(false);
      rank.bring();
      std::vector<double> values(3);
      rank.sum(values);
      rank.deliver();
    }
    return rank.by.bytes_sent();
  }));
  // Half a vector on the way down and half on the way back, and one message of three doubles.
  for (const std::size_t one : bytes) CHECK(one == length * sizeof(float) + 3 * sizeof(double));
}

TEST_CASE("a rank that withdraws makes the others fail where they wait for it, and fails nowhere itself") {
  for (const bool posts : {false, true})
    for (int before = 0; before < 3; ++before) {  // so many verbs go well
      CAPTURE(posts);
      CAPTURE(before);
      const auto ranks = on_ranks(3, [&](const thread_communicator& comm) {
        messenger_of_rank rank(comm, stage_of(schedules::all_to_all{}, comm));
        std::vector<double> values{1, 2};
        const auto verb = [&](int which) {
          if (which == 0) rank.bring(!posts);
          if (which == 1) rank.sum(values, !posts);
          if (which == 2) rank.deliver(!posts);
        };
        rank.begin(posts);
        int done = 0;
        const auto walk_to_the_end = [&] {  // skips what was done before, and lets nobody wait in the rest
          rank.by.withdraw();
          for (int which = 0; which < 3; ++which) verb(which);
        };
        try {
          for (; done < 3; ++done) {
            if (comm.rank() == 1 && done == before) {
              walk_to_the_end();
              return done;
            }
            verb(done);
          }
        } catch (const communication_error&) {
          walk_to_the_end();
          throw;
        }
        return done;
      });
      CHECK(ranks[1].value == before);
      CHECK(ranks[0].threw<communication_error>());
      CHECK(ranks[2].threw<communication_error>());
    }
}

}  // namespace test_of_detail_engine_transport_messages
