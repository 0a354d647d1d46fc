// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/core/communicator_state.hpp>
#include <adasum/core/concepts.hpp>
#include <adasum/exec/serial.hpp>

#include "minimal_types.hpp"

/// For each concept of core/concepts.hpp, a type with every optional member that the page names. Each member that is a
/// function counts its calls, so that a test sees that the page promises nothing that the library does not ask for.
namespace adasum::test {

enum class asked_for {
  copy_to_16_bits,
  copy_from_16_bits,
  measure,
  can_reach,
  for_recombining,
  measure_in_double,
  mix_in_double,
  parameters,
  whole_model,
  degree,
  has_left,
  progress,
  state,
  uses_shared_memory,
  stages_in_place,
  schedule_parameters,
  count
};

/// Counts of all objects that share it.
class question_counts {
 public:
  void note(asked_for what) const { ++(*counts_)[static_cast<std::size_t>(what)]; }
  int of(asked_for what) const { return (*counts_)[static_cast<std::size_t>(what)]; }

 private:
  using list = std::array<std::atomic<int>, static_cast<std::size_t>(asked_for::count)>;
  std::shared_ptr<list> counts_ = std::make_shared<list>();
};

/// serial_space, with all that a space may offer.
class complete_space {
 public:
  std::string name = "complete space";
  explicit complete_space(question_counts asked) : asked_(std::move(asked)) {}

  template <scalar T>
  auto allocate(std::size_t count) const {
    return serial_.allocate<T>(count);
  }
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    asked_.note(asked_for::measure);
    serial_.measure(window, vectors, gram);
  }
  template <scalar T>
  void measure_in_double(const slice& window, std::span<const T* const> vectors, double* gram) const {
    asked_.note(asked_for::measure_in_double);
    serial_.measure_in_double(window, vectors, gram);
  }
  template <scalar From, scalar To>
  void mix_in_double(const slice& window, std::span<const From* const> vectors, const double* weights, To* out) const {
    asked_.note(asked_for::mix_in_double);
    serial_.mix_in_double(window, vectors, weights, out);
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    serial_.mix(window, vectors, weights, out);
  }
  template <scalar From, scalar To>
  void copy(const From* from, To* to, std::size_t count) const {
    if (sizeof(To) > sizeof(From)) asked_.note(asked_for::copy_from_16_bits);
    if (sizeof(To) < sizeof(From)) asked_.note(asked_for::copy_to_16_bits);
    serial_.copy(from, to, count);
  }
  void fence() const {}
  friend bool operator==(const complete_space& a, const complete_space& b) { return a.serial_ == b.serial_; }

  bool can_reach(const void* address) const {
    asked_.note(asked_for::can_reach);
    return address != &unreachable();
  }
  static const double& unreachable() {
    static const double here = 0;
    return here;
  }

  friend auto for_recombining(const complete_space& space) {
    space.asked_.note(asked_for::for_recombining);
    return for_recombining(space.serial_);
  }

 private:
  question_counts asked_;
  serial_space serial_;
};

/// The mean, pair by pair. Falls back each time.
struct complete_pairwise_rule {
  static constexpr inner_products needs = inner_products::none;
  question_counts asked;
  std::size_t fallbacks = 0;
  std::string name = "complete pairwise rule";

  bool whole_model() const {
    asked.note(asked_for::whole_model);
    return false;
  }
  int degree() const {
    asked.note(asked_for::degree);
    return 1;
  }
  pair_weights operator()(const pair_gram& gram) {
    ++fallbacks;
    const auto a = static_cast<double>(gram.leaves_a), b = static_cast<double>(gram.leaves_b);
    return {a / (a + b), b / (a + b)};
  }
};

/// The mean, one set of weights for the whole model. Falls back at every other call, not the first, and notes the segments' numbers.
struct complete_gram_rule {
  static constexpr std::string_view name = "complete gram rule";
  static constexpr inner_products needs = inner_products::distances;
  static constexpr bool leaves_out_nonfinite = true;
  question_counts asked;
  bool per_segment = false;
  std::size_t fallbacks = 0;
  std::vector<std::size_t> numbers{};

  bool whole_model() const {
    asked.note(asked_for::whole_model);
    return !per_segment;
  }
  int degree() const {
    asked.note(asked_for::degree);
    return 1;
  }
  std::array<double, 1> parameters() const {
    asked.note(asked_for::parameters);
    return {static_cast<double>(per_segment)};
  }
  void operator()(gram_view gram, std::span<double> weights, std::size_t k) {
    if (numbers.size() % 2 == 1) ++fallbacks;
    numbers.push_back(k);
    std::ranges::fill(weights, 1 / static_cast<double>(gram.size()));
  }
};

/// Posts, and shares memory among all ranks.
class complete_communicator : public minimal_posting_communicator {
 public:
  complete_communicator(std::shared_ptr<post_office> office, int rank, question_counts asked)
      : minimal_posting_communicator(std::move(office), rank), asked_(std::move(asked)) {}

  class window : public minimal_sharing_communicator<true>::window {
   public:
    window(std::shared_ptr<post_office::memory> block, int ranks, question_counts asked)
        : minimal_sharing_communicator<true>::window(block, ranks), asked_(std::move(asked)) {}
    bool has_left(std::size_t) const { return asked_.note(asked_for::has_left), false; }
    void progress() const { asked_.note(asked_for::progress); }

   private:
    question_counts asked_;
  };
  window share(std::size_t bytes) const { return {office()->share((*shares_)++, bytes), size(), asked_}; }
  communicator_state& state() const { return asked_.note(asked_for::state), *state_; }

 private:
  std::shared_ptr<std::size_t> shares_ = std::make_shared<std::size_t>(0);
  std::shared_ptr<communicator_state> state_ = std::make_shared<communicator_state>();
  question_counts asked_;
};

/// Does what schedules::automatic does: chooses by the length, and works in memory that the ranks share where a plan can.
class complete_schedule {
 public:
  std::string name = "complete schedule";
  static constexpr bool supports_gram_rules = true;
  explicit complete_schedule(question_counts asked) : asked_(std::move(asked)) {}

  shared_memory_use uses_shared_memory(int, const schedule_input& input) const {
    asked_.note(asked_for::uses_shared_memory);
    return input.once ? shared_memory_use::none : shared_memory_use::preferred;
  }
  std::vector<double> parameters() const { return asked_.note(asked_for::schedule_parameters), std::vector{200.}; }
  friend bool operator==(const complete_schedule&, const complete_schedule&) { return true; }
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    if (input.in_place) asked_.note(asked_for::stages_in_place);
    auto found = minimal_schedule(1).stages(rank, size, input);
    if (found.empty() || (is_short(input) && !input.in_place)) return found;
    auto& all = found.front();
    all.sum_over = all.members;
    const auto ranks = all.members.size();
    for (std::size_t i = 0; i < ranks; ++i) all.parts[i] = {input.length * i / ranks, input.length * (i + 1) / ranks};
    return found;
  }

 private:
  static bool is_short(const schedule_input& input) { return input.length * input.element_size < 200; }
  question_counts asked_;
};

/// The ranks' gradients are the leaves in reverse order.
struct reversed_schedule : minimal_schedule {
  static constexpr std::string_view name = "reversed schedule";
  reversed_schedule() : minimal_schedule(1) {}
  std::vector<int> leaf_ranks(int size, const schedule_input&) const {
    std::vector<int> ranks;
    for (int r = size; r-- > 0;) ranks.push_back(r);
    return ranks;
  }
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    auto found = minimal_schedule::stages(rank, size, input);
    for (auto& stage : found) {
      std::ranges::reverse(stage.members);
      stage.self = stage.members.size() - 1 - stage.self;
    }
    return found;
  }
};

}  // namespace adasum::test
