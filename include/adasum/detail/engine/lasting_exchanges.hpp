// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/message.hpp"
#include "../references/communicator_ref.hpp"
#include "small_exchanges.hpp"

namespace adasum::detail {

/// What messages may still use when this rank has given up waiting for another: it stays for good then.
template <class Memory>
struct leak_if_in_flight {
  explicit leak_if_in_flight(const communicator_ref& which) : comm(which) {}
  leak_if_in_flight(const leak_if_in_flight&) = delete;
  leak_if_in_flight& operator=(const leak_if_in_flight&) = delete;
  ~leak_if_in_flight() {
    if (comm.gave_up()) new (std::nothrow) Memory(std::move(memory));
  }

  communicator_ref comm;
  Memory memory{};
};

/// What a rank tells all others (lasting_exchanges::gather).
template <class Value>
struct block_of {
  std::uint64_t is_there = 0;
  Value value{};
};

/// Exchanges of which each rank makes a fixed number, whatever happens: a rank on which one fails makes the others all the
/// same, so that nobody waits for it. The next gather() then tells everyone.
class lasting_exchanges {
 public:
  /// @param most_messages  of one exchange, each way
  lasting_exchanges(const communicator_ref& comm, std::size_t most_messages) : comm_(comm) {
    out_.reserve(most_messages);
    in_.reserve(most_messages);
  }

  /// fill(out, in) appends the messages of one exchange.
  template <class Fill>
  void make(const Fill& fill) {
    out_.clear();
    in_.clear();
    fill(out_, in_);
    make();
  }

  /// Does what concerns this rank alone, and may fail.
  template <class Work>
  void attempt_alone(const Work& work) {
    try {
      work();
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
  }

  /// Every rank's block to all. @param mine  nothing: this rank has none, since something is missing
  /// @param blocks  memory for one of each rank, in which Block::is_there says whether there is one
  /// @return whether all are there; not if this rank has failed
  template <class Block>
    requires std::is_trivially_copyable_v<Block>
  bool gather(const std::optional<Block>& mine, std::vector<Block>& blocks) {
    static_assert(std::is_same_v<decltype(Block::is_there), std::uint64_t>);
    Block own = mine.value_or(Block{});
    own.is_there = mine.has_value() && !failure_;
    for (auto& one : blocks) one.is_there = 0;
    allgather run(std::as_bytes(std::span(&own, 1)), comm_.rank(), comm_.size(),
                  std::as_writable_bytes(std::span(blocks)));
    make_all([&](auto& out, auto& in) { return run.next(out, in); });
    if (failure_) return false;
    for (const auto& one : blocks)
      if (one.is_there != 1) return false;
    return true;
  }

  /// The same. @throws what failed on this rank; communication_error  another rank has failed
  template <class Block>
  void gather_all(const std::optional<Block>& mine, std::vector<Block>& blocks, const std::string& call) {
    const bool all_are_there = gather(mine, blocks);
    require_success();
    if (!all_are_there) throw communication_error({call, ": another rank has failed"});
  }

  /// The block of rank 0, on all ranks. Nothing follows, so that nobody need be told of what fails at the end of it.
  /// @throws what gather_all throws
  template <class Block>
  Block of_first(const std::optional<Block>& mine, std::vector<Block>& blocks, const char* call) {
    gather_all(mine, blocks, call);
    return blocks.front();
  }

  /// One exchange after another, as long as next(out, in) appends one.
  template <class Next>
  void make_all(const Next& next) {
    for (out_.clear(), in_.clear(); next(out_, in_); out_.clear(), in_.clear()) make();
  }
  /// @throws what failed on this rank
  void require_success() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void make() {
    attempt_alone([&] { attempt([&] { comm_.exchange(out_, in_); }); });
  }

  communicator_ref comm_;
  std::vector<outgoing> out_;
  std::vector<incoming> in_;
  std::exception_ptr failure_;
};

}  // namespace adasum::detail
