// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <thread>

#include <adasum/adasum.hpp>

#include "support/allocations.hpp"
#include "support/whole_model_buckets.hpp"

namespace test_of_bucketed_whole_model_overlap {

/// Rules that weigh the whole model, over buckets: what is done before the last bucket is there.

using namespace adasum::test;

namespace {

/// How often this thread has measured or mixed.
thread_local std::size_t kernels = 0;

struct counting_space : adasum::serial_space {
  template <class T>
  void measure(const adasum::slice& part, std::span<const T* const> vectors, double* gram) const {
    ++kernels;
    adasum::serial_space::measure(part, vectors, gram);
  }
  template <class T>
  void measure(const adasum::slice& part, std::span<const T* const> vectors, double* gram, std::size_t bytes) const {
    ++kernels;
    adasum::serial_space::measure(part, vectors, gram, bytes);
  }
  template <class T>
  void mix(const adasum::slice& part, std::span<const T* const> vectors, const double* weights, T* out) const {
    ++kernels;
    adasum::serial_space::mix(part, vectors, weights, out);
  }
  template <class T>
  void mix_in_double(const adasum::slice& part, std::span<const T* const> vectors, const double* weights,
                     T* out) const {
    ++kernels;
    adasum::serial_space::mix_in_double(part, vectors, weights, out);
  }
};

/// Marks bucket after bucket ready, and looks whether each but the last is worked on before the next one is there.
template <class Schedule>
void check_overlap(int size, const Schedule& order) {
  const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
    const adasum::options lean{.check_agreement = false};
    auto buckets =
        adasum::plan_bucketed<float>(counting_space{}, comm, model, 400, adasum::rules::adacons{}, order, lean);
    CHECK(buckets.location_of(7).bucket == 0);
    CHECK(buckets.location_of(7).segment == 7);
    CHECK(buckets.location_of(7).report == 0);
    CHECK(buckets.location_of(7).elements == adasum::index_range{18, 49});
    for (int pass = 0; pass < 4; ++pass) {
      const auto before = allocations();
      for (std::size_t bucket = 0; bucket < buckets.buckets(); ++bucket) {
        const auto so_far = kernels;
        for (std::size_t i = 0; i < model.size(); ++i)
          if (buckets.location_of(i).bucket == bucket) {
            std::ranges::fill(buckets.gradient(i), static_cast<float>(comm.rank() + 1));
            buckets.ready(i);
          }
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        const bool is_last = bucket + 1 == buckets.buckets();
        while (!is_last && kernels == so_far && std::chrono::steady_clock::now() < end) {
          CHECK_FALSE(buckets.test());
          std::this_thread::yield();
        }
        if (!is_last) CHECK(kernels > so_far);
      }
      buckets.wait();
      if (pass > 1) CHECK(allocations() == before);
    }
    return 0;
  });
  for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
}

}  // namespace

TEST_CASE("buckets are worked on while others are still computed, and nothing is allocated from the second pass on") {
  check_overlap(3, adasum::schedules::automatic{});
  check_overlap(4, adasum::schedules::recursive_halving{});  // sums of vectors
}

}  // namespace test_of_bucketed_whole_model_overlap
