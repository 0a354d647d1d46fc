// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/doctest_beside_torch.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/communicators/c10d.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/testing/communicator.hpp>

#include "support/gloo_world.hpp"

namespace test_of_communicators_c10d_communicator {

using namespace adasum::test;

static_assert(adasum::communicator_for<adasum::c10d_communicator, adasum::serial_space>);
static_assert(adasum::posting_communicator<adasum::c10d_communicator, adasum::serial_space>);

namespace {

const adasum::serial_space space;

}  // namespace

TEST_CASE("messages and posted exchanges are what the concepts ask for") {
  const adasum::c10d_communicator comm(gloo_group());
  CHECK(comm.rank() == this_process().rank);
  CHECK(comm.size() == this_process().size);
  CHECK_NOTHROW(adasum::check_communicator(comm, space));
}

TEST_CASE("all ranks are on one host") {
  const adasum::c10d_communicator comm(gloo_group());
  CHECK(comm.nodes() == std::vector<int>(static_cast<std::size_t>(comm.size()), 0));
}

TEST_CASE("an empty communicator says that it is empty") {
  const auto is_empty = doctest::Contains("adasum::c10d_communicator: this communicator is empty");
  const auto check_empty = [&](const adasum::c10d_communicator& comm) {
    CHECK_FALSE(comm);
    CHECK_FALSE(comm.native());
    CHECK_THROWS_WITH_AS(comm.state(), is_empty, adasum::bad_input);
    CHECK_THROWS_WITH_AS(comm.rank(), is_empty, adasum::bad_input);
    CHECK_THROWS_WITH_AS(comm.size(), is_empty, adasum::bad_input);
    CHECK_THROWS_WITH_AS(comm.nodes(), is_empty, adasum::bad_input);
    CHECK_THROWS_WITH_AS(comm.exchange(space, {}, {}), is_empty, adasum::bad_input);
    adasum::c10d_communicator::pending nothing;
    CHECK_THROWS_WITH_AS(comm.post(space, {}, {}, nothing), is_empty, adasum::bad_input);
  };
  check_empty({});
  check_empty(adasum::c10d_communicator(c10::intrusive_ptr<::c10d::ProcessGroup>()));
  adasum::c10d_communicator comm(gloo_group());
  const auto moved = std::move(comm);
  check_empty(comm);  // NOLINT(bugprone-use-after-move): that is what is tested
  CHECK(moved);
}

TEST_CASE("a process that does not come: an error that names it, which every later call repeats") {
  const adasum::c10d_communicator comm(gloo_group(std::chrono::seconds(5)));
  const int last = comm.size() - 1;
  const auto waited = [store = this_process().store](int more) { return store->add("waited", more); };
  const auto error_of = [&](const auto& call) -> std::string {
    std::byte bytes[8] = {};
    const adasum::incoming in[] = {{last, bytes}};
    try {
      call(std::span(in));
    } catch (const adasum::communication_error& error) {
      return error.what();
    }
    return "no error";
  };
  if (comm.rank() != last) {
    CHECK_FALSE(comm.state().gave_up());
    const auto first = error_of([&](const auto& in) { comm.exchange(space, {}, in); });
    CHECK_MESSAGE(first.find("receiving from rank " + std::to_string(last)) != first.npos, first);
    CHECK(comm.state().gave_up());
    CHECK(error_of([&](const auto& in) { comm.exchange(space, {}, in); }) == first);
    CHECK(error_of([&](const auto& in) {
            adasum::c10d_communicator::pending pending;
            comm.post(space, {}, in, pending);
            pending.wait();
          }) == first);
    waited(1);
  }
  // A process that leaves is seen to have left, and is not waited for.
  while (waited(0) < last) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace test_of_communicators_c10d_communicator
