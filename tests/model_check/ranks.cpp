// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ranks do, compiled with instrumentation. It follows detail/engine/transport/shared_memory.hpp and
// detail/engine/stage_actions.hpp, with one element for each slice of a gradient.
#include "ranks.hpp"

#include <adasum/core/error.hpp>
#include <adasum/detail/engine/shared_votes.hpp>
#include <adasum/detail/engine/transport/shared_barriers.hpp>

#include <array>
#include <chrono>
#include <span>
#include <vector>

#include "voting.hpp"
#include "window.hpp"

namespace adasum::test::model {

namespace {

using adasum::detail::barrier_pattern;
using adasum::detail::shared_sizes;
using adasum::detail::time_limit;

double element_of(std::size_t run, std::size_t rank, std::size_t i) {
  return static_cast<double>(1000 * run + 100 * rank + i + 1);
}

template <bool one_address_space>
class rank_in_model {
  using access_type = adasum::detail::shared_barriers<window<one_address_space>>;

 public:
  rank_in_model(const scenario& one, std::size_t self)
      : one_(one),
        self_(self),
        elements_(one.ranks),
        access_(window<one_address_space>{one.ranks}, static_cast<int>(self), sizes_of(one),
                one.different_plans ? self : 1, std::chrono::seconds(60)),
        all_(everybody(), self, one.radix),
        voter_(one, self, [this](unsigned place) { reach(place); }) {
    if (one.what != work::behind) return;
    const std::array<std::size_t, 2> near{self / 2 * 2, self / 2 * 2 + 1}, far{0, 2};
    near_ = barrier_pattern(near, self % 2, 8);
    if (self % 2 == 0) far_ = barrier_pattern(far, self / 2, 8);
  }

  void run() {
    for (run_ = 1; run_ <= one_.runs; ++run_) {
      if (one_.leaves.rank == self_ && one_.leaves.after < run_) return;
      const bool good = reduce();
      note_outcome(run_, self_, good);
      history_ = 2 * history_ + good;
      // Where it may have given up waiting to be left alone, more follows from how that went.
      if (!one_.gives_up_leaving) reach(0);
    }
  }

 private:
  static bool publishes(const scenario& one) { return one.what == work::copies || one.what == work::votes; }
  static shared_sizes sizes_of(const scenario& one) {
    return {.sums = publishes(one) ? most_ranks : 2,
            .rounds = one.radix < one.ranks ? 2u : 1u,
            .record_bytes = 16,
            .gradient_bytes = one_address_space ? 0 : gradient_bytes};
  }
  std::vector<std::size_t> everybody() const {
    std::vector<std::size_t> ranks;
    for (std::size_t i = 0; i < one_.ranks; ++i) ranks.push_back(i);
    return ranks;
  }

  // ── states: what is to come follows from the place in the program, and from how earlier runs ended ──

  void reach(unsigned place) {
    place_ = place;
    checkpoint((history_ * 64 + run_) * 256 + place);
  }

  bool fails(point where) const { return one_.fails(where, self_, run_); }

  /// The caller's gradient; in processes, the copy that the run works on, if others work there.
  double* own() const {
    const bool is_callers = one_address_space || publishes(one_);
    return reinterpret_cast<double*>(is_callers ? shared_memory() + gradients_at + self_ * gradient_bytes
                                                : access_.gradient());
  }
  double* gradient(std::size_t i) const { return reinterpret_cast<double*>(access_.published(i)); }
  /// What this rank combines in one stage of all: no other rank reads it, so in processes it stays in the caller's gradient.
  double& own_slice() {
    const bool is_one_stage = one_.what == work::in_place || one_.what == work::sums || one_.what == work::unmeasured;
    return !one_address_space && is_one_stage ? callers_slice_ : own()[self_];
  }
  double& element(std::size_t i) { return i == self_ ? own_slice() : own()[i]; }
  void fill() {
    for (std::size_t i = 0; i < elements_; ++i) element(i) = element_of(run_, self_, i);
  }
  double sum_of(std::size_t i) const {
    double sum = 0;
    for (std::size_t rank = 0; rank < one_.ranks; ++rank) sum += element_of(run_, rank, i);
    return sum;
  }

  bool reduce() {
    if (one_address_space) fill();
    if (one_.what == work::setups) return voter_.set_up(run_);
    if (one_.what == work::votes && !voter_.tell_the_others(run_)) return false;
    bool good = false;
    try {
      access_.begin_run();
      good = take_steps();
    } catch (const adasum::detail::ranks_differ&) {
      let_time_fly(false);
      access_.take_back_run();
      if (!voter_.go_back()) return false;
      good = begin_again();
    } catch (const communication_error&) {
    }
    if (!good) {
      let_time_fly(false);
      access_.fail();
      voter_.fail();
      reach(place_ + 100);
      leave();
      return false;
    }
    if (!one_address_space) check_result();  // it is copied to the caller's
    access_.end_run();
    if (one_address_space) check_result();
    return true;
  }
  /// A run that this rank had taken back, as another one waited for all votes.
  bool begin_again() {
    try {
      access_.begin_run();
      return take_steps();
    } catch (const communication_error&) {
      return false;
    }
  }
  void check_result() {
    if (publishes(one_)) return;
    for (std::size_t i = 0; i < elements_; ++i) require(element(i) == sum_of(i), "a wrong result");
  }

  void leave() {
    if (one_.gives_up_leaving || one_.blocking) {
      let_time_fly(one_.gives_up_leaving);
      access_.await_left_alone();
      let_time_fly(false);
    } else {
      while (!access_.is_left_alone()) {
      }
    }
  }

  bool take_steps() {
    if (fails(point::before_first)) return false;
    access_.require_left_alone();
    if (!one_address_space) fill();
    switch (one_.what) {
      case work::in_place:
      case work::sums: return combine_in_place();
      case work::copies:
      case work::votes: return combine_copies();
      case work::setups: break;
      case work::unmeasured: return combine_without_sum();
      case work::levels: return combine_by_levels();
      case work::behind: return self_ % 2 == 1 ? stay_behind() : combine_while_one_stays_behind();
    }
    return false;
  }

  // ── waiting ──

  /// @return false: it gives up
  bool await(point impatient) {
    const auto look = [&] { voter_.require_same(access_); };
    if (one_.blocking) {
      let_time_fly(fails(impatient));
      access_.await_all(time_limit::always, look);
      let_time_fly(false);
    } else {
      while (!access_.all_arrived(look))
        if (fails(impatient)) return false;
    }
    return true;
  }
  bool meet(const barrier_pattern& with, unsigned place, point impatient) {
    access_.arrive(with);
    do {
      reach(place++);
      if (!await(impatient)) return false;
    } while (access_.next_round());
    reach(place);
    return true;
  }
  /// Adds what each rank of the barrier knows.
  bool add(const barrier_pattern& with, double mine, unsigned place, point impatient) {
    std::array<double, 1> sum{mine};
    double expected = 0;
    for (const auto rank : with.ranks()) expected += mine - static_cast<double>(self_) + static_cast<double>(rank);
    access_.contribute(sum, with);
    do {
      reach(place++);
      if (!await(impatient)) return false;
    } while (access_.add_round(sum));
    require(sum[0] == expected, "a wrong sum");
    reach(place);
    return true;
  }
  /// Where vectors nearly cancel, they are combined one by one: that takes more sums.
  bool add_twice(const barrier_pattern& with, unsigned place) {
    return add(with, mine_of(place), place, point::none) && add(with, mine_of(place + 3), place + 3, point::none);
  }
  double mine_of(unsigned place) const { return static_cast<double>(1000 * run_ + 10 * place + self_); }

  // ── what a run does ──

  bool combine_in_place() {
    access_.publish(own());
    if (!meet(all_, 10, point::impatient_first)) return false;
    const auto vectors = gradients();
    if (fails(point::after_first)) return false;
    check_slices(vectors);
    if (!add(all_, mine_of(20), 20, point::impatient_sum)) return false;
    if (one_.what == work::sums) {
      check_slices(vectors);
      if (!add_twice(all_, 23)) return false;
    }
    if (fails(point::after_sum)) return false;
    write_to_all();
    if (fails(point::before_last)) return false;
    return meet(all_, 30, point::impatient_last);
  }

  using gradients_of_all = std::array<const double*, most_ranks>;
  gradients_of_all gradients() const {
    gradients_of_all all{};
    for (std::size_t i = 0; i < one_.ranks; ++i) all[i] = gradient(i);
    return all;
  }
  void check_slices(const gradients_of_all& vectors) {
    for (std::size_t i = 0; i < one_.ranks; ++i)
      require((i == self_ ? own_slice() : vectors[i][self_]) == element_of(run_, i, self_), "a wrong gradient");
  }
  void write_to_all() {
    own_slice() = sum_of(self_);
    for (std::size_t i = 0; i < one_.ranks; ++i)
      if (i != self_) gradient(i)[self_] = sum_of(self_);
  }

  bool combine_copies() {
    access_.publish_copy(std::as_bytes(std::span(own(), elements_)));
    if (!meet(all_, 10, point::impatient_last)) return false;
    voter_.pass();
    if (fails(point::after_first)) return false;
    for (std::size_t i = 0; i < one_.ranks; ++i)
      for (std::size_t k = 0; k < elements_; ++k)
        require(reinterpret_cast<const double*>(access_.published_copy(i))[k] == element_of(run_, i, k),
                "a wrong copy");
    return true;
  }

  bool combine_without_sum() {
    access_.publish(own());
    if (!meet(all_, 10, point::impatient_first)) return false;
    const auto vectors = gradients();
    if (fails(point::after_first)) return false;
    check_slices(vectors);
    write_to_all();
    if (fails(point::before_last)) return false;
    return meet(all_, 30, point::impatient_last);
  }

  /// Level 1: ranks 0 and 1, 2 and 3, of which each gets two elements; level 2: 0 and 2, 1 and 3, and each gets one.
  bool combine_by_levels() {
    const std::size_t neighbour = self_ ^ 1, other = self_ ^ 2, bit = self_ & 1;
    const std::array<std::size_t, 2> first{std::min(self_, neighbour), std::max(self_, neighbour)},
        second{std::min(self_, other), std::max(self_, other)};
    const barrier_pattern first_group(first, bit, 8), second_group(second, self_ >> 1, 8);
    const std::size_t element = 2 * bit + (self_ >> 1);

    access_.publish(own());
    access_.begin_level(0);
    write_record(0);
    if (!meet(first_group, 10, point::impatient_first)) return false;
    check_record(0, neighbour);
    const auto* const theirs = gradient(neighbour);
    if (fails(point::after_first)) return false;
    const auto check = [&] {
      for (std::size_t i = 2 * bit; i < 2 * bit + 2; ++i)
        require(theirs[i] == element_of(run_, neighbour, i) && own()[i] == element_of(run_, self_, i),
                "a wrong gradient at level 1");
    };
    check();
    if (!add(first_group, mine_of(20), 20, point::impatient_sum)) return false;
    if (fails(point::after_sum)) return false;
    if (first.front() == 0) {  // the ranks of the other group need not have these sums
      check();
      if (!add_twice(first_group, 23)) return false;
    }
    for (std::size_t i = 2 * bit; i < 2 * bit + 2; ++i)  // of copies, where there were more sums
      own()[i] += first.front() == 0 ? element_of(run_, neighbour, i) : theirs[i];
    access_.publish(own());
    access_.begin_level(1);
    write_record(1);
    if (!meet(second_group, 30, point::none)) return false;
    check_record(1, other);
    const double sum = own()[element] + gradient(other)[element];
    require(sum == sum_of(element), "a wrong gradient at level 2");
    if (!add(all_, mine_of(40), 40, point::none)) return false;
    own()[element] = gradient(other)[element] = sum;
    access_.return_to_level(1);
    if (!meet(second_group, 50, point::none)) return false;
    for (std::size_t i = 2 * bit; i < 2 * bit + 2; ++i) gradient(neighbour)[i] = own()[i];
    if (fails(point::before_last)) return false;
    access_.return_to_level(0);
    return meet(first_group, 60, point::impatient_last);
  }

  /// Ranks 0 and 1 meet, and 2 and 3; 0 and 2 combine both gradients. Then these two meet, and get two elements each.
  bool combine_while_one_stays_behind() {
    const std::size_t neighbour = self_ + 1, other = 2 - self_;
    access_.publish(own());
    access_.begin_level(0);
    if (!meet(near_, 10, point::impatient_first)) return false;
    check_record(0, neighbour);
    const auto* const near = gradient(neighbour);
    if (fails(point::after_first)) return false;
    for (std::size_t i = 0; i < elements_; ++i) {
      require(near[i] == element_of(run_, neighbour, i), "a wrong gradient at level 1");
      own()[i] += near[i];
    }
    access_.publish(own());
    access_.begin_level(1);
    write_record(1);
    if (!meet(far_, 30, point::none)) return false;
    check_record(1, other);
    const auto* const far = gradient(other);
    for (std::size_t i = self_; i < self_ + 2; ++i)
      require(own()[i] + far[i] == sum_of(i), "a wrong gradient at level 2");
    if (!add(far_, mine_of(40), 40, point::impatient_sum)) return false;
    if (fails(point::after_sum)) return false;
    for (std::size_t i = self_; i < self_ + 2; ++i) own()[i] = gradient(other)[i] = sum_of(i);
    access_.return_to_level(1);
    if (!meet(far_, 50, point::none)) return false;
    for (std::size_t i = 0; i < elements_; ++i) gradient(neighbour)[i] = own()[i];
    if (fails(point::before_last)) return false;
    access_.return_to_level(0);
    return meet(near_, 60, point::impatient_last);
  }
  bool stay_behind() {
    access_.publish(own());
    access_.begin_level(0);
    write_record(0);
    if (!meet(near_, 10, point::impatient_first)) return false;
    if (fails(point::after_first) || fails(point::before_last)) return false;
    access_.return_to_level(0);
    return meet(near_, 60, point::impatient_last);
  }

  double* record(std::size_t i) const { return reinterpret_cast<double*>(access_.records_of(i)); }
  void write_record(std::size_t level) { record(self_)[level] = element_of(run_, self_, 50 + level); }
  void check_record(std::size_t level, std::size_t of) const {
    require(record(of)[level] == element_of(run_, of, 50 + level), "a wrong record");
  }

  const scenario& one_;
  std::size_t self_, elements_;
  mutable access_type access_;
  barrier_pattern all_, near_, far_;
  voter voter_;
  std::size_t run_ = 0;
  std::uint64_t history_ = 1;
  unsigned place_ = 0;
  double callers_slice_ = 0;  // see own_slice
};

template <bool one_address_space>
void run_rank_in(const scenario& one, std::size_t rank) {
  rank_in_model<one_address_space>(one, rank).run();
  // The plan is gone, and the caller frees the gradient.
  auto* const own = reinterpret_cast<double*>(shared_memory() + gradients_at + rank * gradient_bytes);
  for (std::size_t i = 0; one_address_space && i < one.ranks; ++i) own[i] = -1;
}

}  // namespace

void run_rank(const scenario& one, std::size_t rank) {
  one.one_address_space ? run_rank_in<true>(one, rank) : run_rank_in<false>(one, rank);
}

}  // namespace adasum::test::model
