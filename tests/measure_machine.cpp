// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/communicators/self.hpp>
#include <adasum/communicators/threads.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/measure_machine.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/minimal_types.hpp"
#include "support/nodes.hpp"
#include "support/ranks.hpp"

namespace test_of_measure_machine {

using namespace adasum::test;
using adasum::schedules::machine;

namespace {

const adasum::serial_space exec;
constexpr std::size_t little = 1;  // bytes: only what is measured in any case

/// Times are positive, whatever noise there was; eager_bytes and handshake may be 0.
void check_constants(const machine& on) {
  const auto numbers = adasum::schedules::constants_of(on);
  for (const auto& [key, first, count] : adasum::schedules::constant_names) {
    const std::string name = key;
    CAPTURE(name);
    const bool may_be_zero = name.ends_with("eager_bytes") || name.ends_with("handshake");
    for (auto i = first; i < first + count; ++i) {
      CHECK(adasum::schedules::is_constant(numbers[i]));
      CHECK((numbers[i] > 0 || may_be_zero));
      CHECK((numbers[i] < 1 || name.ends_with("eager_bytes")));
    }
  }
}

template <class Value>
void check_same(const std::vector<outcome<Value>>& ranks) {
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    check_constants(*rank.value);
    CHECK(*rank.value == *ranks.front().value);
  }
}

/// Throws once it has made so many exchanges on one rank, as a network that fails.
class failing_communicator {
 public:
  failing_communicator(adasum::thread_communicator ranks, int at, int after)
      : ranks_(std::move(ranks)), left_(std::make_shared<int>(ranks_.rank() == at ? after : -1)) {}
  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }
  template <class Space>
  void exchange(const Space& space, std::span<const adasum::outgoing> out, std::span<const adasum::incoming> in) const {
    ranks_.exchange(space, out, in);
    if (*left_ >= 0 && (*left_)-- == 0) throw adasum::communication_error("planted");
  }

 private:
  adasum::thread_communicator ranks_;
  std::shared_ptr<int> left_;
};

/// Counts the exchanges of a rank.
class counting_communicator {
 public:
  explicit counting_communicator(adasum::thread_communicator ranks) : ranks_(std::move(ranks)) {}
  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }
  template <class Space>
  void exchange(const Space& space, std::span<const adasum::outgoing> out, std::span<const adasum::incoming> in) const {
    ++*count_;
    ranks_.exchange(space, out, in);
  }
  int count() const { return *count_; }

 private:
  adasum::thread_communicator ranks_;
  std::shared_ptr<int> count_ = std::make_shared<int>(0);
};

/// A space whose kernels or memory fail.
struct failing_space : adasum::serial_space {
  bool fails = false;
  friend bool operator==(const failing_space&, const failing_space&) = default;
  template <class T>
  auto allocate(std::size_t count) const {
    if (fails) throw std::bad_alloc();
    return adasum::serial_space::allocate<T>(count);
  }
};

}  // namespace

TEST_CASE("constants of ranks that are threads: the same bits on all") {
  for (const int size : {1, 2, 3, 4}) {
    CAPTURE(size);
    check_same(on_ranks(size, [](const auto& comm) { return adasum::measure_machine(exec, comm, little); }));
  }
  check_constants(adasum::measure_machine(exec, adasum::self_communicator{}));
  check_same(on_ranks(2, [](const auto& comm) { return adasum::measure_machine<double>(exec, comm, little); }));
}

TEST_CASE("constants of ranks on nodes, some of them alone on theirs") {
  for (const std::vector<int>& nodes : {std::vector{0, 0, 1, 1}, {0, 1, 1, 0, 2}, {5, 4, 3}}) {
    const auto blocks = node_communicator::make_blocks();
    check_same(on_ranks(static_cast<int>(nodes.size()), [&](const adasum::thread_communicator& threads) {
      return adasum::measure_machine(exec, node_communicator(threads, nodes, blocks), little);
    }));
  }
}

TEST_CASE("a communicator and a space with no members that they need not have") {
  check_same(on_each(group_of<minimal_communicator>(3), [](const minimal_communicator& comm) {
    return adasum::measure_machine(minimal_space<float>(1), comm, little);
  }));
}

TEST_CASE("how often ranks exchange does not depend on how long that takes") {
  const auto counts = [] {
    return results_of(on_ranks(3, [](const adasum::thread_communicator& threads) {
      const counting_communicator comm(threads);
      adasum::measure_machine(exec, comm, little);
      return comm.count();
    }));
  };
  const auto first = counts();
  CHECK(first == counts());
  for (const int count : first) {
    CHECK(count == first.front());
    CHECK(count < 2000);
  }
}

TEST_CASE("a rank without memory: all ranks throw, before anything is measured") {
  for (const int failing : {0, 2}) {
    const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
      failing_space space;
      space.fails = comm.rank() == failing;
      return adasum::measure_machine(space, comm, little);
    });
    for (int rank = 0; rank < 3; ++rank) {
      const auto& one = ranks[static_cast<std::size_t>(rank)];
      if (rank == failing)
        CHECK(one.threw<std::bad_alloc>());
      else
        CHECK(one.threw<adasum::error>());
    }
  }
}

namespace {

/// Counts how often it measures, and throws once it has done so often.
struct tiring_space : adasum::serial_space {
  std::shared_ptr<int> left = std::make_shared<int>(1'000'000'000);
  friend bool operator==(const tiring_space&, const tiring_space&) = default;
  template <class T>
  void measure(const adasum::slice& window, std::span<const T* const> vectors, double* gram) const {
    if ((*left)-- == 0) throw std::bad_alloc();
    adasum::serial_space::measure(window, vectors, gram);
  }
};

}  // namespace

TEST_CASE("a kernel that fails on one rank, before ranks meet or between exchanges: all throw, and none waits") {
  const auto measured = [](const adasum::thread_communicator& threads, const tiring_space& space) {
    return adasum::measure_machine(space, counting_communicator(threads), little);
  };
  const int all = results_of(on_ranks(3, [&](const auto& threads) {
                    const tiring_space space;
                    const int before = *space.left;
                    measured(threads, space);
                    return before - *space.left;
                  })).front();
  for (const int after : {0, 3, all - 8, all - 1}) {
    CAPTURE(after);
    const auto ranks = on_ranks(3, [&](const auto& threads) {
      const tiring_space space;
      if (threads.rank() == 1) *space.left = after;
      return measured(threads, space);
    });
    for (std::size_t rank = 0; rank < 3; ++rank)
      CHECK((rank == 1 ? ranks[rank].threw<std::bad_alloc>() : ranks[rank].threw<adasum::error>()));
  }
}

TEST_CASE("an exchange that fails on one rank, whichever: none waits, and none goes on with constants of its own") {
  const int all = results_of(on_ranks(3, [](const adasum::thread_communicator& threads) {
                    const counting_communicator comm(threads);
                    adasum::measure_machine(exec, comm, little);
                    return comm.count();
                  })).front();
  for (const int failing : {0, 2})
    // Ranks meet in exchanges 0 and 1: what fails there may be known to some of them alone, as when a plan is made.
    for (const int after : {2, 3, 50, 300, all - 5, all - 4, all - 3, all - 2, all - 1}) {
      CAPTURE(failing);
      CAPTURE(after);
      const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& threads) {
        return adasum::measure_machine(exec, failing_communicator(threads, failing, after), little);
      });
      CHECK(ranks[static_cast<std::size_t>(failing)].threw<adasum::error>());
      const machine* known = nullptr;
      for (const auto& rank : ranks) {
        CHECK((rank.value || rank.threw<adasum::error>()));
        if (rank.value && known) CHECK(*rank.value == *known);
        if (rank.value) known = &*rank.value;
      }
      if (after < all - 4) CHECK(known == nullptr);
    }
}

TEST_CASE("a rank that does something else is told so") {
  for (const auto& rank : on_ranks(2, [](const adasum::thread_communicator& comm) {
         std::vector<float> gradient(10, 1);
         if (comm.rank() == 0)
           adasum::measure_machine(exec, comm, little);
         else
           adasum::plan_allreduce<float>(exec, comm, 10, adasum::options{.check_agreement = true});
         return 0;
       })) {
    const auto message = rank.message_of<adasum::agreement_error>().value_or("");
    CHECK_MESSAGE(message.find("measuring the machine") != message.npos, message);
  }
}

TEST_CASE("ranks that measure other lengths, or for other elements, are told so before anything is timed") {
  const auto check = [](const auto& ranks, std::string_view what) {
    for (const auto& rank : ranks) {
      const auto message = rank.template message_of<adasum::agreement_error>().value_or("");
      CHECK_MESSAGE(message.find(what) != message.npos, message);
    }
  };
  check(on_ranks(2,
                 [](const adasum::thread_communicator& comm) {
                   return adasum::measure_machine(exec, comm, comm.rank() == 0 ? little : std::size_t{4} << 20);
                 }),
        "disagree on the length");
  check(on_ranks(2,
                 [](const adasum::thread_communicator& comm) {
                   return comm.rank() == 0 ? adasum::measure_machine<float>(exec, comm, little)
                                           : adasum::measure_machine<double>(exec, comm, little);
                 }),
        "disagree on the scalar type");
}

}  // namespace test_of_measure_machine
