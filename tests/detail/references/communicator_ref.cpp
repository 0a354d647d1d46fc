// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each entry of the tables of a communicator, of what it posts and of memory that ranks share calls the member that it stands
// for, with the arguments as they are.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <adasum/detail/references/communicator_ref.hpp>

#include "support/minimal_types.hpp"
#include "support/recorded.hpp"

namespace test_of_detail_references_communicator_ref {

using namespace adasum;
using namespace adasum::test;

namespace {

struct recording_window {
  static constexpr bool same_address_space = true;
  std::size_t number = 0;
  std::vector<int> all{2, 5};
  std::span<const int> ranks() const { return all; }
  std::byte* of(std::size_t index) const { return at(8 * (index + 1)); }
  bool has_left(std::size_t index) const {
    record("has_left", number, index);
    return index == 1;
  }
  void progress() const { record("progress", number); }
};

struct recording_communicator {
  int number = 0;
  std::shared_ptr<communicator_state> held = std::make_shared<communicator_state>();

  int rank() const { return 1; }
  int size() const { return 3; }
  communicator_state& state() const { return *held; }
  std::array<int, 3> nodes() const { return {7, 7, 8}; }
  void reserve(std::size_t messages, std::size_t longest) const { record("reserve", number, messages, longest); }
  template <class Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    record("exchange", number, out.size(), out[0].peer, out[0].bytes.data(), in.size(), in[0].peer, in[0].bytes.data(),
           static_cast<const void*>(&space) == at(24));
  }

  struct pending {
    int tests = 0;
    bool test() {
      record("test", tests);
      return ++tests > 1;
    }
    void wait() { record("wait", tests); }
  };
  template <class Space>
  void post(const Space& space, std::span<const outgoing> out, std::span<const incoming> in, pending& held_back) const {
    record("post", number, out.size(), out[0].peer, out[0].bytes.data(), in.size(), in[0].peer, in[0].bytes.data(),
           static_cast<const void*>(&space) == at(24));
    held_back.tests = 0;
  }
  void reserve(std::size_t messages, std::size_t longest, pending& held_back) const {
    record("reserve for", number, messages, longest);
    held_back.tests = 5;
  }
  recording_window share(std::size_t bytes) const {
    record("share", number, bytes);
    return {bytes};
  }
};

/// A space at a known address.
const minimal_space<float>& space() { return *reinterpret_cast<const minimal_space<float>*>(at(24)); }

}  // namespace
}  // namespace test_of_detail_references_communicator_ref

namespace adasum::detail {

template <>
struct own_activity<test_of_detail_references_communicator_ref::recording_communicator> {
  static void note(const void* comm, reduction_activity what) {
    test::record("note", static_cast<const test_of_detail_references_communicator_ref::recording_communicator*>(comm)->number,
                 static_cast<int>(what));
  }
};
template <>
struct own_sharing<test_of_detail_references_communicator_ref::recording_communicator> {
  static bool can_share(const test_of_detail_references_communicator_ref::recording_communicator& comm) { return comm.number == 1; }
};
template <>
struct own_memory<test_of_detail_references_communicator_ref::recording_window> : memory_defaults {
  static constexpr unsigned most_looks = 3;
  static std::size_t bytes(const test_of_detail_references_communicator_ref::recording_window& memory, std::size_t asked) {
    return memory.number + asked;
  }
  static void rest(const test_of_detail_references_communicator_ref::recording_window& memory) { test::record("rest", memory.number); }
};

}  // namespace adasum::detail

namespace test_of_detail_references_communicator_ref {

TEST_CASE("each entry is the member of its name") {
  recording_communicator comm{.number = 1};
  const auto ref = detail::ref_to_communicator(space(), comm);
  CHECK(ref.rank() == 1);
  CHECK(ref.size() == 3);
  CHECK(ref.state() == comm.held.get());
  CHECK(ref.comm() == &comm);
  CHECK(ref.nodes() == std::vector{7, 7, 8});

  const outgoing out{2, {at(8), 16}};
  const std::array in{incoming{0, {at(64), 16}}, incoming{2, {at(96), 16}}};
  recorded.clear();
  ref.exchange(std::span(&out, 1), in);
  CHECK(last_recorded() == "exchange 1 1 2 @8 2 0 @64 1");
  ref.reserve(4, 9);
  CHECK(last_recorded() == "reserve 1 4 9");
  ref.note_activity(detail::reduction_activity::withdrawn);
  CHECK(last_recorded() == "note 1 2");

  REQUIRE(ref.can_post());
  const auto pending = ref.make_pending();
  ref.reserve(4, 9, pending.get());
  CHECK(last_recorded() == "reserve for 1 4 9");
  ref.wait(pending.get());
  CHECK(last_recorded() == "wait 5");
  ref.post(std::span(&out, 1), in, pending.get());
  CHECK(last_recorded() == "post 1 1 2 @8 2 0 @64 1");
  CHECK_FALSE(ref.test(pending.get()));
  CHECK(ref.test(pending.get()));
  CHECK(last_recorded() == "test 0; test 1");

  // A copy does what the communicator did, and is of its type.
  const auto held = ref.copy();
  const auto space_held = detail::no_object();
  comm.number = 3;
  recorded.clear();
  ref.to(held, space_held).reserve(4, 9);
  CHECK(last_recorded() == "reserve 1 4 9");
  CHECK(ref.is_of_type(ref.to(held, space_held)));
  // Through the handle of whoever calls.
  const void* handle = &comm;
  const auto through = ref.through(handle, space_held);
  through.reserve(4, 9);
  CHECK(last_recorded() == "reserve 3 4 9");
  const recording_communicator another{.number = 4};
  handle = &another;
  through.reserve(4, 9);
  CHECK(last_recorded() == "reserve 4 4 9");
}

TEST_CASE("memory that ranks share: each entry is the member of its name, or what is said beside the concept") {
  const recording_communicator comm{.number = 1}, shares_nothing{.number = 2};
  const auto ref = detail::ref_to_communicator(space(), comm);
  REQUIRE(ref.can_share());
  CHECK_FALSE(detail::ref_to_communicator(space(), shares_nothing).can_share());
  CHECK(ref.same_address_space());
  recorded.clear();
  const auto window = ref.share(40);
  CHECK(last_recorded() == "share 1 40");
  CHECK(window.shares_addresses());
  CHECK(std::vector(window.ranks().begin(), window.ranks().end()) == std::vector{2, 5});
  CHECK(window.of(0) == at(8));
  CHECK(window.of(1) == at(16));
  CHECK(window.looks() == 3);
  CHECK(window.bytes() == 80);
  CHECK(window.has_left(1));
  CHECK_FALSE(window.has_left(0));
  CHECK(last_recorded() == "has_left 40 1; has_left 40 0");
  window.progress();
  CHECK(last_recorded() == "progress 40");
  window.let_others_run();
  CHECK(last_recorded() == "rest 40");
}

TEST_CASE("what a communicator or its memory does not have is not there") {
  const auto office = std::make_shared<post_office>(1);
  const minimal_communicator comm(office, 0);
  const auto ref = detail::ref_to_communicator(space(), comm);
  CHECK(ref.state() == nullptr);
  CHECK_FALSE(ref.gave_up());
  CHECK_FALSE(ref.has_reduction_in_flight());
  CHECK(ref.nodes().empty());
  CHECK_FALSE(ref.can_post());
  CHECK_FALSE(ref.can_share());
  ref.reserve(4, 9);
  ref.note_activity(detail::reduction_activity::withdrawn);
  ref.require_usable("nobody");

  const minimal_posting_communicator posts(office, 0);
  const auto posting = detail::ref_to_communicator(space(), posts);
  REQUIRE(posting.can_post());
  posting.reserve(4, 9, posting.make_pending().get());
  CHECK_FALSE(posting.can_share());
  CHECK_FALSE(posting.is_of_type(ref));

  const minimal_sharing_communicator<false> shares(office, 0);
  const auto sharing = detail::ref_to_communicator(space(), shares);
  REQUIRE(sharing.can_share());
  CHECK_FALSE(sharing.same_address_space());
  const auto window = sharing.share(40);
  CHECK(window.bytes() == 40);
  CHECK_FALSE(window.has_left(0));
  window.progress();
  window.let_others_run();
}

}  // namespace test_of_detail_references_communicator_ref
