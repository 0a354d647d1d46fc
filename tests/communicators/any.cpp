// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/communicators/any.hpp>
#include <adasum/communicators/self.hpp>
#include <adasum/communicators/threads.hpp>
#include <adasum/testing/communicator.hpp>

#include "support/bits.hpp"
#include "support/random_gradients.hpp"

namespace test_of_communicators_any {

using namespace adasum::test;

static_assert(adasum::posting_communicator<adasum::any_communicator, adasum::serial_space>);
static_assert(adasum::shared_memory_communicator<adasum::any_communicator>);

namespace {

const adasum::serial_space space;

/// Has nothing that is optional.
class bare_communicator {
 public:
  explicit bare_communicator(adasum::thread_communicator comm) : comm_(std::move(comm)) {}
  int rank() const { return comm_.rank(); }
  int size() const { return comm_.size(); }
  template <class Space>
  void exchange(const Space& where, std::span<const adasum::outgoing> out, std::span<const adasum::incoming> in) const {
    comm_.exchange(where, out, in);
  }

 private:
  adasum::thread_communicator comm_;
};

template <class Comm>
std::vector<float> reduced(const Comm& comm, std::size_t length) {
  const auto gradients = random_gradients<float>(static_cast<std::size_t>(comm.size()), length, 7);
  auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
  auto plan = adasum::plan_allreduce<float>(space, comm, length);
  plan.start(gradient);
  while (!plan.test()) std::this_thread::yield();
  plan.wait();
  return gradient;
}

}  // namespace

TEST_CASE("any communicator: messages, posted exchanges and shared memory are those of the one that it holds") {
  for (const int size : {1, 2, 3, 5})
    CHECK_NOTHROW(adasum::thread_communicator::run(
        size, [](const auto& comm) { adasum::check_communicator(adasum::any_communicator(comm), space); }));
}

TEST_CASE("any communicator: the same bits, also where nothing optional is there") {
  for (const std::size_t length : {0u, 5u, 30'000u})
    adasum::thread_communicator::run(3, [&](const adasum::thread_communicator& comm) {
      const auto expected = reduced(comm, length);
      CHECK(same_bits(reduced(adasum::any_communicator(comm), length), expected));
      CHECK(same_bits(reduced(adasum::any_communicator(bare_communicator(comm)), length), expected));
    });
}

TEST_CASE("any communicator: what is not there") {
  const adasum::any_communicator alone{adasum::self_communicator{}};
  CHECK(alone.nodes().size() == 1);
  CHECK_FALSE(alone.state().gave_up());
  CHECK_NOTHROW(alone.state().require_usable("test"));
  CHECK(&alone.state() == &adasum::any_communicator(alone).state());
  adasum::thread_communicator::run(2, [](const adasum::thread_communicator& comm) {
    const adasum::any_communicator bare{bare_communicator(comm)};
    CHECK_FALSE(adasum::detail::own_sharing<adasum::any_communicator>::can_share(bare));
    CHECK_THROWS_AS(static_cast<void>(bare.share(8)), adasum::shared_memory_error);
  });
}

TEST_CASE("any communicator: an empty one says that it is empty") {
  const auto is_empty = doctest::Contains("adasum::any_communicator: this communicator is empty");
  const auto check_empty = [&](const adasum::any_communicator& comm) {
    CHECK_FALSE(comm);
    CHECK_THROWS_WITH_AS(comm.state(), is_empty, adasum::bad_input);
    CHECK_THROWS_WITH_AS(comm.rank(), is_empty, adasum::bad_input);
    CHECK_THROWS_WITH_AS(comm.exchange(space, {}, {}), is_empty, adasum::bad_input);
    CHECK_THROWS_WITH_AS(static_cast<void>(comm.share(8)), is_empty, adasum::bad_input);
  };
  check_empty({});
  adasum::any_communicator comm{adasum::self_communicator{}};
  const auto moved = std::move(comm);
  check_empty(comm);  // NOLINT(bugprone-use-after-move): that is what is tested
  CHECK(moved);
}

}  // namespace test_of_communicators_any
