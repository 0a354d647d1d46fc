// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <adasum/core/concepts.hpp>
#include <adasum/core/error.hpp>

#include "post_office.hpp"

/// For each concept of core/concepts.hpp, a type with exactly the members that the page requires, and nothing more: no
/// default constructor, no comparison, no assignment where the page does not ask for it, no other elements. A call that
/// uses anything else of them does not compile.
namespace adasum::test {

/// What minimal_space::allocate returns. It can be moved, and asked for its address.
template <class T>
class minimal_buffer {
 public:
  explicit minimal_buffer(std::size_t count) : elements_(std::make_unique<T[]>(count)) {}
  minimal_buffer(minimal_buffer&&) noexcept = default;
  minimal_buffer& operator=(minimal_buffer&&) noexcept = default;
  T* data() { return elements_.get(); }

 private:
  std::unique_ptr<T[]> elements_;
};

/// Works on elements of T alone. No template, so the library cannot name a template argument either, but for allocate.
template <std::floating_point T>
class minimal_space {
 public:
  static constexpr const char* name = "minimal space";
  explicit minimal_space(int) {}

  template <std::same_as<T> Element>
  minimal_buffer<Element> allocate(std::size_t count) const {
    return minimal_buffer<Element>(count);
  }

  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    for (std::size_t k = 0; k < window.segments.size(); ++k)
      for (std::size_t i = 0; i < vectors.size(); ++i)
        for (std::size_t j = 0; j <= i; ++j) {
          double sum = 0;
          bool zero = true;
          for (auto x = window.local(k).begin; x < window.local(k).end; ++x) {
            sum += static_cast<double>(vectors[i][x]) * static_cast<double>(vectors[j][x]);
            zero = zero && vectors[i][x] == T{0};
          }
          if (i == j && sum == 0 && !zero) sum = std::numeric_limits<double>::denorm_min();
          gram[k * packed_size(vectors.size()) + packed_index(i, j)] = sum;
        }
  }

  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    for (std::size_t k = 0; k < window.segments.size(); ++k)
      for (auto x = window.local(k).begin; x < window.local(k).end; ++x) {
        double sum = 0;
        for (std::size_t i = 0; i < vectors.size(); ++i)
          if (const double weight = weights[k * vectors.size() + i]; weight != 0)
            sum += weight * static_cast<double>(vectors[i][x]);
        out[x] = static_cast<T>(sum);
      }
  }

  void copy(const T* from, T* to, std::size_t count) const { std::copy_n(from, count, to); }
  void fence() const {}
};

/// The mean of two.
class minimal_pairwise_rule {
 public:
  static constexpr const char* name = "minimal pairwise rule";
  explicit minimal_pairwise_rule(int) {}
  minimal_pairwise_rule(const minimal_pairwise_rule&) = default;
  minimal_pairwise_rule& operator=(const minimal_pairwise_rule&) = delete;

  pair_weights operator()(const pair_gram&) { return {0.5, 0.5}; }
};

/// The mean of all.
class minimal_gram_rule {
 public:
  static constexpr const char* name = "minimal gram rule";
  explicit minimal_gram_rule(int) {}
  minimal_gram_rule(const minimal_gram_rule&) = default;
  minimal_gram_rule& operator=(const minimal_gram_rule&) = delete;

  void operator()(gram_view gram, std::span<double> weights) {
    std::ranges::fill(weights, 1 / static_cast<double>(gram.size()));
  }
};

/// Blocks. Copies messages.
class minimal_communicator {
 public:
  minimal_communicator(std::shared_ptr<post_office> office, int rank) : office_(std::move(office)), rank_(rank) {}

  int rank() const { return rank_; }
  int size() const { return office_->size(); }

  template <class Space>
  void exchange(const Space&, std::span<const outgoing> out, std::span<const incoming> in) const {
    for (const auto& message : out)
      office_->send(rank_, message.peer, message.withheld ? message.bytes.first(0) : message.bytes);
    bool complete = true;
    for (const auto& buffer : in) complete &= is_taken(*office_->receive(buffer.peer, rank_, true), buffer);
    if (!complete) throw communication_error("a message of another size");
  }

 protected:
  /// Whether the message has the size of its buffer. If so, it is there.
  static bool is_taken(std::span<const std::byte> message, const incoming& buffer) {
    if (message.size() != buffer.bytes.size()) return false;
    std::ranges::copy(message, buffer.bytes.begin());
    return true;
  }
  const std::shared_ptr<post_office>& office() const { return office_; }

 private:
  std::shared_ptr<post_office> office_;
  int rank_;
};

/// Exchanges that were posted: with post() as well, and what that needs.
class minimal_posting_communicator : public minimal_communicator {
 public:
  using minimal_communicator::minimal_communicator;

  class pending {
   public:
    pending() = default;
    pending(const pending&) = delete;
    pending& operator=(const pending&) = delete;

    bool test() { return go_on(false); }
    void wait() { go_on(true); }

   private:
    friend minimal_posting_communicator;
    bool go_on(bool waits) {
      for (; arrived_ < expected_.size(); ++arrived_) {
        const auto& buffer = expected_[arrived_];
        const auto message = office_->receive(buffer.peer, rank_, waits);
        if (!message) return false;
        complete_ &= is_taken(*message, buffer);
      }
      if (!std::exchange(complete_, true)) throw communication_error("a message of another size");
      return true;
    }
    std::shared_ptr<post_office> office_;
    int rank_ = 0;
    std::vector<incoming> expected_;
    std::size_t arrived_ = 0;
    bool complete_ = true;
  };

  template <class Space>
  void post(const Space&, std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) const {
    for (const auto& message : out)
      office()->send(rank(), message.peer, message.withheld ? message.bytes.first(0) : message.bytes);
    exchange.office_ = office();
    exchange.rank_ = rank();
    exchange.expected_.assign(in.begin(), in.end());
    exchange.arrived_ = 0;
  }
};

/// With memory that all ranks share. @tparam Everywhere  whether any address is valid on all ranks
template <bool Everywhere>
class minimal_sharing_communicator : public minimal_communicator {
 public:
  minimal_sharing_communicator(std::shared_ptr<post_office> office, int rank)
      : minimal_communicator(std::move(office), rank), shares_(std::make_shared<std::size_t>(0)) {}

  class window {
   public:
    static constexpr bool same_address_space = Everywhere;
    window(std::shared_ptr<post_office::memory> block, int ranks) : block_(std::move(block)) {
      for (int r = 0; r < ranks; ++r) ranks_.push_back(r);
    }
    window(window&&) noexcept = default;
    window& operator=(window&&) noexcept = default;
    const std::vector<int>& ranks() const { return ranks_; }
    std::byte* of(std::size_t i) const { return block_->of(i); }

   private:
    std::shared_ptr<post_office::memory> block_;
    std::vector<int> ranks_;
  };
  window share(std::size_t bytes) const { return {office()->share((*shares_)++, bytes), size()}; }

 private:
  std::shared_ptr<std::size_t> shares_;
};

/// All ranks combine everything for themselves; for one rank alone, there is no stage.
class minimal_schedule {
 public:
  static constexpr const char* name = "minimal schedule";
  static constexpr bool supports_gram_rules = true;
  explicit minimal_schedule(int) {}

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    if (size == 1) return {};
    stage all;
    for (int r = 0; r < size; ++r) {
      all.members.push_back(r);
      all.leaf_offsets.push_back(static_cast<std::size_t>(r));
      all.parts.push_back({0, input.length});
    }
    all.leaf_offsets.push_back(static_cast<std::size_t>(size));
    all.self = static_cast<std::size_t>(rank);
    all.survivors = all.members.size();
    all.held = {0, input.length};
    all.sum_over = {rank};
    return {all};
  }
};

static_assert(execution_space<minimal_space<float>, float> && !execution_space<minimal_space<float>, double>);
static_assert(execution_space<minimal_space<double>, double> && !execution_space<minimal_space<double>, float>);
static_assert(pairwise_rule<minimal_pairwise_rule> && gram_rule<minimal_gram_rule>);
static_assert(communicator_for<minimal_communicator, minimal_space<float>>);
static_assert(!posting_communicator<minimal_communicator, minimal_space<float>>);
static_assert(!shared_memory_communicator<minimal_communicator>);
static_assert(posting_communicator<minimal_posting_communicator, minimal_space<float>>);
static_assert(shared_memory_communicator<minimal_sharing_communicator<true>>);
static_assert(schedule<minimal_schedule>);

}  // namespace adasum::test
