// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/core/concepts.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/rules/adasum.hpp>
#include <adasum/schedules/partition.hpp>

/// Communicators, schedules, rules and execution spaces that a user could have written, from the concepts alone.
namespace adasum::test {

/// Passes everything on, and counts what this rank sends.
template <class Communicator>
class counting_communicator {
 public:
  struct counts {
    std::size_t elements_bytes = 0;  // parts of gradients
    std::size_t all_bytes = 0;
    std::size_t messages = 0;
    std::size_t exchanges = 0;
  };

  explicit counting_communicator(Communicator comm) : comm_(std::move(comm)) {}

  int rank() const { return comm_.rank(); }
  int size() const { return comm_.size(); }
  const counts& sent() const { return *counts_; }

  template <class Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    counts_->messages += out.size();
    ++counts_->exchanges;
    for (const auto& message : out) {
      counts_->all_bytes += message.bytes.size();
      if (message.where == memory_kind::space) counts_->elements_bytes += message.bytes.size();
    }
    comm_.exchange(space, out, in);
  }

 private:
  Communicator comm_;
  std::shared_ptr<counts> counts_ = std::make_shared<counts>();
};

/// A binomial tree: at each stage the left rank combines and the right one waits for the result. Powers of two only.
struct binomial_tree {
  static constexpr std::string_view name = "binomial_tree";
  static constexpr bool supports_gram_rules = false;

  std::vector<stage> stages(int rank, int size, const schedule_input& what) const {
    const index_range all{0, what.length};
    std::vector<stage> stages;
    for (int distance = 1; distance < size && rank % distance == 0; distance *= 2) {
      const int left = rank / (2 * distance) * (2 * distance), right = left + distance;
      const auto leaf = static_cast<std::size_t>(left), width = static_cast<std::size_t>(distance);
      stages.push_back(
          {{left, right}, rank == left ? 0u : 1u, {leaf, leaf + width, leaf + 2 * width}, 1, all, {all}, {left}});
    }
    if (size == 1) stages.push_back({{0}, 0, {0, 1}, 1, all, {all}, {0}});
    return stages;
  }
};

/// The first ranks combine a part of everybody's gradient each, as parameter servers do; the others wait.
struct parameter_servers {
  static constexpr std::string_view name = "parameter_servers";
  static constexpr bool supports_gram_rules = true;
  int servers = 2;
  friend bool operator==(const parameter_servers&, const parameter_servers&) = default;

  std::vector<stage> stages(int rank, int size, const schedule_input& what) const {
    stage one;
    one.members.resize(static_cast<std::size_t>(size));
    std::iota(one.members.begin(), one.members.end(), 0);
    one.self = static_cast<std::size_t>(rank);
    one.leaf_offsets.resize(static_cast<std::size_t>(size) + 1);
    std::iota(one.leaf_offsets.begin(), one.leaf_offsets.end(), std::size_t{0});
    one.survivors = static_cast<std::size_t>(std::min(servers, size));
    one.held = {0, what.length};
    for (std::size_t i = 0; i < one.survivors; ++i) one.parts.push_back(detail::part_of(one.held, one.survivors, i));
    one.sum_over.assign(one.members.begin(), one.members.begin() + static_cast<std::ptrdiff_t>(one.survivors));
    return {one};
  }
};

/// The gradient with the larger norm, exactly.
struct longest {
  static constexpr std::string_view name = "longest";
  pair_weights operator()(const pair_gram& g) const { return g.aa >= g.bb ? pair_weights{1, 0} : pair_weights{0, 1}; }
};

/// The mean of unit gradients: a rule of the whole Gram matrix.
struct mean_of_units {
  static constexpr std::string_view name = "mean_of_units";
  void operator()(gram_view gram, std::span<double> weights) const {
    for (std::size_t i = 0; i < gram.size(); ++i)
      weights[i] = 1 / (static_cast<double>(gram.size()) * std::sqrt(gram(i, i)));
  }
};

/// What a rule or a space throws when its time has come. Not an exception of the library.
struct failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Counts down to a failure; never fails if it begins below zero.
class countdown {
 public:
  explicit countdown(int calls) : left_(std::make_shared<std::atomic<int>>(calls)) {}
  void tick(const char* what) const {
    if ((*left_)-- == 0) throw failure(what);
  }
  bool is_over() const { return *left_ < 0; }
  friend bool operator==(const countdown&, const countdown&) = default;

 private:
  std::shared_ptr<std::atomic<int>> left_;  // copies of a rule or space may serve several ranks
};

/// rules::adasum until it throws.
struct failing_rule {
  static constexpr std::string_view name = "failing";
  countdown until;
  pair_weights operator()(const pair_gram& gram) const {
    until.tick("the rule failed");
    return rules::adasum{}(gram);
  }
};

/// The serial space until one of its kernels throws.
struct failing_space {
  static constexpr std::string_view name = "failing";
  countdown until;
  serial_space space;
  friend bool operator==(const failing_space&, const failing_space&) = default;

  template <scalar T>
  auto allocate(std::size_t count) const {
    return space.allocate<T>(count);
  }
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    until.tick("measuring failed");
    space.measure<T>(window, vectors, gram);
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    until.tick("mixing failed");
    space.mix<T>(window, vectors, weights, out);
  }
  template <scalar T>
  void copy(const T* from, T* to, std::size_t count) const {
    space.copy(from, to, count);
  }
  void fence() const {}
};

}  // namespace adasum::test
