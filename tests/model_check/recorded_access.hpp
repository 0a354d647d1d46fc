// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/error.hpp>
#include <adasum/detail/engine/transport/shared_barriers.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "recording.hpp"

namespace adasum::test::model {

/// Of which memory of ranks the use is recorded: to be specialised ahead of shared_barriers.
template <class Memory>
inline constexpr bool is_recorded = false;
/// The same memory for the library's own shared_barriers.
template <class Memory>
struct not_recorded : Memory {};

}  // namespace adasum::test::model

namespace adasum::detail {

/// The library's own class, whose calls are recorded. It is a member and not a base: a function that the library begins
/// to call must be written here, too, or this does not compile.
template <class Memory>
  requires test::model::is_recorded<Memory>
class shared_barriers<Memory> {
  using recording = test::model::recording;
  using inside = recording::inside;

 public:
  shared_barriers(Memory memory, int rank, const shared_sizes& sizes, std::uint64_t signature,
                  std::chrono::duration<double> timeout, const communicator_state* state = nullptr)
      : own_({std::move(memory)}, rank, sizes, signature, timeout, state) {
    record().call("makes its plan");
  }
  shared_barriers(const shared_barriers&) = delete;
  shared_barriers& operator=(const shared_barriers&) = delete;
  ~shared_barriers() { record().drop_plan(); }

  // What does not change while the plan is there.
  std::span<const int> ranks() const { return own_.ranks(); }
  std::size_t size() const { return own_.size(); }
  std::size_t self() const { return own_.self(); }
  std::size_t place_of(int rank) const { return own_.place_of(rank); }

  std::byte* gradient() const {
    const inside now(record());
    auto* const found = own_.gradient();
    if (found) record().gradient_is_at(self(), found);
    return found;
  }

  void begin_run() {
    record().begin_run();
    was_asked_ = false;
    const inside now(record());
    own_.begin_run();
  }
  void begin_level(std::size_t number) {
    call("begins level " + std::to_string(number), [&] { own_.begin_level(number); });
  }
  void return_to_level(std::size_t number) {
    call("returns to level " + std::to_string(number), [&] { own_.return_to_level(number); });
  }
  std::uint64_t next_run() const { return own_.next_run(); }
  void set_next_run(std::uint64_t number) { own_.set_next_run(number); }
  void take_back_run() {
    call("takes the run back", [&] { own_.take_back_run(); });
    record().end_run();
  }
  void end_run() {
    call("ends the run", [&] { own_.end_run(); });
    record().end_run();
  }

  void publish(void* gradient) {
    call("publishes where its gradient lies", [&] { own_.publish(gradient); });
    record().gradient_is_at(self(), gradient);
  }
  std::byte* published(std::size_t i) const {
    if (i != self()) record().access("where rank " + std::to_string(i) + "'s gradient lies", false);
    const inside now(record());
    auto* const found = own_.published(i);
    record().gradient_is_at(i, found);
    return found;
  }

  void arrive(const barrier_pattern& with) {
    call("arrives where there meet" + text_of(with), [&] { own_.arrive(with); });
  }
  bool next_round() {
    const inside now(record());
    const bool goes_on = own_.next_round();
    goes_on ? record().call("begins another round") : record().call_once("has had all rounds");
    return goes_on;
  }
  bool all_arrived(function_ref<void()> look = [] {}) {
    record().call_once("waits");
    const inside now(record());
    return own_.all_arrived(look);
  }
  void await_all(time_limit limit, function_ref<void()> look = [] {}) const {
    record().call_once("waits");
    const inside now(record());
    if (record().gives_up()) throw timeout_error("a rank gives up waiting", 0);
    own_.await_all(limit, look);
  }

  bool has_lost_a_rank() const {
    const inside now(record());
    return own_.has_lost_a_rank();
  }
  void fail() {
    call("fails", [&] { own_.fail(); });
    record().end_run();
  }
  bool is_left_alone() const {
    record().call_once("waits until it is left alone");
    const inside now(record());
    return own_.is_left_alone();
  }
  void await_left_alone() {
    record().call_once("waits until it is left alone");
    const inside now(record());
    own_.await_left_alone();
  }
  /// Asked again in the same run, it does nothing.
  void require_left_alone() {
    if (!std::exchange(was_asked_, true)) record().call("asks whether it was left alone");
    const inside now(record());
    own_.require_left_alone();
  }

  void publish_copy(std::span<const std::byte> bytes) {
    call("publishes a copy of its gradient", [&] { own_.publish_copy(bytes); });
  }
  const std::byte* published_copy(std::size_t i) const {
    const inside now(record());
    const auto* const found = own_.published_copy(i);
    record().copy_is_at(i, found);
    return found;
  }
  std::byte* records_of(std::size_t i) const {
    record().access("the records of rank " + std::to_string(i), i == self());
    const inside now(record());
    return own_.records_of(i);
  }

  void contribute(std::span<const double> values, const barrier_pattern& with) {
    call("contributes to the sum of" + text_of(with), [&] { own_.contribute(values, with); });
  }
  bool add_round(std::span<double> values) {
    const inside now(record());
    const bool goes_on = own_.add_round(values);
    record().call(goes_on ? "adds, and begins another round" : "adds");
    return goes_on;
  }

 private:
  static recording& record() { return *recording::current; }
  template <class Call>
  void call(const std::string& what, const Call& make) const {
    record().call(what);
    const inside now(record());
    make();
  }
  std::string text_of(const barrier_pattern& with) const {
    std::string text;
    for (const auto rank : with.ranks()) text += " " + std::to_string(rank);
    return text;
  }

  shared_barriers<test::model::not_recorded<Memory>> own_;
  bool was_asked_ = false;
};

}  // namespace adasum::detail
