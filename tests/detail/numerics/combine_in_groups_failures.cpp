// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Many vectors along the tree, in groups, where a rule throws or memory runs out: also on a space that works later, as
// devices do.
#include <adasum/combine.hpp>
#include <adasum/detail/numerics/combine_in_groups.hpp>
#include <adasum/detail/references/sums_table.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/tree.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "support/allocations.hpp"
#include "support/bits.hpp"
#include "support/random_gradients.hpp"

namespace test_of_detail_numerics_combine_in_groups_failures {

using namespace adasum;
using namespace adasum::test;

namespace {

/// Work that has been begun and has not ended.
class waiting_work {
 public:
  void add(std::vector<const void*> addresses, std::function<void()> run) {
    items_.push_back({std::move(addresses), std::move(run)});
  }
  void run() {
    for (const auto& one : std::exchange(items_, {})) one.run();
  }
  std::size_t count() const { return items_.size(); }
  bool uses(const void* begin, const void* end) const {
    const std::less<const void*> before;
    return std::ranges::any_of(items_, [&](const auto& one) {
      return std::ranges::any_of(one.addresses, [&](const void* at) { return !before(at, begin) && before(at, end); });
    });
  }

 private:
  struct item {
    std::vector<const void*> addresses;
    std::function<void()> run;
  };
  std::vector<item> items_;
};

/// serial_space, but everything happens in fence(). Notes memory that is freed while work waits that uses it.
class late_space {
 public:
  static constexpr std::string_view name = "late";

  template <scalar T>
  auto allocate(std::size_t count) const {
    struct buffer {
      decltype(serial_space().allocate<T>(0)) memory;
      std::size_t count;
      std::shared_ptr<state> shared;
      T* data() const { return memory.data(); }
      buffer(buffer&&) = default;
      buffer& operator=(buffer&&) = default;
      buffer(std::size_t elements, std::shared_ptr<state> all)
          : memory(serial_space().allocate<T>(elements)), count(elements), shared(std::move(all)) {}
      ~buffer() {
        if (shared && shared->work.uses(data(), data() + count)) shared->freed_too_early = true;
      }
    };
    return buffer(count, state_);
  }
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    later(window, vectors, gram,
          [=](const slice& part, const auto& from) { serial_space().measure<T>(part, from, gram); });
  }
  template <scalar T>
  void measure_in_double(const slice& window, std::span<const T* const> vectors, double* gram) const {
    later(window, vectors, gram,
          [=](const slice& part, const auto& from) { serial_space().measure_in_double<T>(part, from, gram); });
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    later(window, vectors, out, [=, own = copied(window, vectors, weights)](const slice& part, const auto& from) {
      serial_space().mix<T>(part, from, own.data(), out);
    });
  }
  template <scalar From, scalar To>
  void mix_in_double(const slice& window, std::span<const From* const> vectors, const double* weights, To* out) const {
    later(window, vectors, out, [=, own = copied(window, vectors, weights)](const slice& part, const auto& from) {
      serial_space().mix_in_double<From, To>(part, from, own.data(), out);
    });
  }
  template <scalar T>
  void copy(const T* from, T* to, std::size_t count) const {
    state_->work.add({from, to}, [=] { serial_space().copy(from, to, count); });
  }
  void fence() const {
    without_failures([&] { return state_->work.run(), true; });  // what has been begun succeeds
  }

  friend bool operator==(const late_space&, const late_space&) = default;

  /// Whether there is work that nobody has waited for.
  bool works() const { return state_->work.count() != 0; }
  bool freed_too_early() const { return state_->freed_too_early; }

 private:
  struct state {
    waiting_work work;
    bool freed_too_early = false;
  };

  template <class T>
  static std::vector<double> copied(const slice& window, std::span<const T* const> vectors, const double* weights) {
    return {weights, weights + window.segments.size() * vectors.size()};
  }
  /// Keeps the window and the list of vectors, which may be gone when the call has returned.
  template <class T, class Run>
  void later(const slice& window, std::span<const T* const> vectors, const void* out, const Run& run) const {
    std::vector<const void*> addresses(vectors.begin(), vectors.end());
    addresses.push_back(out);
    const auto all = window.segments.offsets();
    state_->work.add(std::move(addresses),
                     [run, offsets = std::vector(all.begin(), all.end()), range = window.range, origin = window.origin,
                      from = std::vector(vectors.begin(), vectors.end())] {
                       run(slice{segments_view{offsets}, range, origin}, from);
                     });
  }

  std::shared_ptr<state> state_ = std::make_shared<state>();
};
static_assert(detail::combines_in_groups<late_space, float>);

/// Adasum, until it throws.
struct throwing_rule {
  static constexpr std::string_view name = "throwing";
  std::size_t* calls_left;
  pair_weights operator()(const pair_gram& gram) const {
    if ((*calls_left)-- == 0) throw std::domain_error("the rule throws");
    return rules::adasum{}(gram);
  }
};

/// Of 13 vectors, in two groups; one segment is recombined from the vectors.
struct problem {
  static constexpr std::size_t n = 13;
  segments cut{4200, 30, 4200, 0, 7};
  std::vector<std::vector<float>> gradients = random_gradients<float>(n, cut.total(), 1);
  problem() {
    for (std::size_t x = cut.offset(1); x < cut.offset(2); ++x) gradients[1][x] = -gradients[0][x];
    REQUIRE(detail::grouping::pays(n, cut));
  }
  template <class Space>
  std::vector<float> result_of(const Space& space) const {
    std::vector<float> out(cut.total());
    CHECK(combine(space, gradients, out, rules::adasum{}, cut).recombined_segments() == 1);
    return out;
  }
};

template <class Space>
bool has_left_work(const Space& space) {
  if constexpr (requires { space.works(); })
    return space.works() || space.freed_too_early();
  else
    return false;
}

}  // namespace
}  // namespace test_of_detail_numerics_combine_in_groups_failures

/// Several rounds.
template <>
inline constexpr std::size_t adasum::detail::own_round_bytes<test_of_detail_numerics_combine_in_groups_failures::late_space> = 4096;

namespace test_of_detail_numerics_combine_in_groups_failures {

TEST_CASE_TEMPLATE("a rule throws, at each of its calls", Space, serial_space, late_space) {
  const problem given;
  const auto expected = given.result_of(Space());
  const auto before = given.gradients;
  std::vector<float> out(given.cut.total());
  std::size_t throws = 0;
  for (bool threw = true; threw;) {
    CAPTURE(throws);
    const Space space;
    std::size_t calls_left = throws;
    const auto live = live_allocations();
    threw = false;
    try {
      combine(space, given.gradients, out, throwing_rule{&calls_left}, given.cut);
    } catch (const std::domain_error&) {
      threw = true;
    }
    if (threw) CHECK(live_allocations() == live);
    REQUIRE(!has_left_work(space));
    throws += threw;
  }
  CHECK(throws >= 5 * (given.n - 1));  // at each node of each segment, and those of the one that is recombined
  CHECK(same_bits(out, expected));
  for (std::size_t i = 0; i < given.n; ++i) CHECK(same_bits(given.gradients[i], before[i]));
}

TEST_CASE_TEMPLATE("whichever allocation fails: std::bad_alloc, and the next call is right", Space, serial_space,
                   late_space) {
  const problem given;
  const auto expected = given.result_of(Space());
  const auto before = given.gradients;
  std::vector<float> out(given.cut.total());
  std::size_t failures = 0;
  for (bool ran_out = true; ran_out;) {
    CAPTURE(failures);
    const Space space;
    const auto live = live_allocations();
    bool threw = false;
    {
      const failing_allocations planned(failures);
      try {
        combine(space, given.gradients, out, rules::adasum{}, given.cut);
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      ran_out = planned.any();
    }
    CHECK(threw == ran_out);
    if (threw) CHECK(live_allocations() == live);
    REQUIRE(!has_left_work(space));
    failures += ran_out;
    combine(space, given.gradients, out, rules::adasum{}, given.cut);
    CHECK(same_bits(out, expected));
  }
  CHECK(failures >= 15);  // arrays of the call, of the groups, of the report
  for (std::size_t i = 0; i < given.n; ++i) CHECK(same_bits(given.gradients[i], before[i]));
}

TEST_CASE("rounds allocate nothing") {
  const auto allocated = [](const segments& cut) {
    const auto g = random_gradients<float>(24, cut.total(), 2);
    std::vector<float> out(cut.total());
    REQUIRE(detail::grouping::pays(24, cut));
    std::vector<const void*> at;
    for (const auto& vector : g) at.push_back(vector.data());
    const std::vector<std::size_t> leaves(24, 1);
    rules::adasum rule;
    const auto before = allocations();
    const serial_space space;
    detail::combine_vectors(detail::ref_to_space<float>(space), rule, at, leaves,
                            reinterpret_cast<std::byte*>(out.data()), cut, detail::sums_if_any<float, serial_space>());
    return allocations() - before;
  };
  CHECK(allocated(segments{std::vector<std::size_t>(7, 9000)}) == allocated(segments{9000}));
  // Sums that are not kept are measured in parts: several, or one.
  const std::size_t longest = detail::grouping::kept_bytes / (3 * sizeof(double));
  CHECK(allocated(segments{longest + 1}) == allocated(segments{longest}));
}

}  // namespace test_of_detail_numerics_combine_in_groups_failures
