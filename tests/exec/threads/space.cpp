// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// threads_space: the contract of the concept, and the same bits as serial_space.
#include <adasum/adasum.hpp>
#include <adasum/exec/threads.hpp>
#include <adasum/exec/threads/space.hpp>
#include <adasum/testing/execution_space.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "support/bits.hpp"
#include "support/doctest_scalars.hpp"
#include "support/eager_threads.hpp"
#include "support/every_instruction_set.hpp"
#include "support/random_gradients.hpp"
#include "support/refusal.hpp"
#include "support/sizes.hpp"

namespace test_of_exec_threads_space {

using namespace adasum;
using namespace adasum::test;

namespace {

static_assert(execution_space<threads_space, float> && execution_space<threads_space, double> &&
              !device_space<threads_space>);

template <class T>
std::vector<const T*> pointers(const std::vector<std::vector<T>>& vectors, std::size_t from = 0) {
  std::vector<const T*> at;
  for (const auto& vector : vectors) at.push_back(vector.data() + from);
  return at;
}

/// NaN is one number: the sign of one that the processor makes depends on the order of its operands.
std::vector<double> with_one_nan(std::vector<double> numbers) {
  for (double& x : numbers)
    if (std::isnan(x)) x = std::numeric_limits<double>::quiet_NaN();
  return numbers;
}

template <class T, class Space>
std::vector<double> measured(const Space& space, const slice& window, const std::vector<std::vector<T>>& g,
                             bool in_double) {
  std::vector<double> gram(window.segments.size() * packed_size(g.size()), 1e99);
  const auto at = pointers(g, window.origin);
  if constexpr (detail::measures_in_double<Space, T>)  // not every space does
    if (in_double) return space.template measure_in_double<T>(window, at, gram.data()), with_one_nan(gram);
  space.template measure<T>(window, at, gram.data());
  return with_one_nan(gram);
}

template <class T, class Space>
std::vector<T> mixed(const Space& space, const slice& window, const std::vector<std::vector<T>>& g) {
  uniform_numbers uniform(9);
  std::vector<double> weights(window.segments.size() * g.size());
  for (double& one : weights) one = uniform.below(5) == 0 ? 0 : uniform();
  std::vector<T> out(g[0].size(), from_double<T>(9));
  space.template mix<T>(window, pointers(g, window.origin), weights.data(), out.data() + window.origin);
  return out;
}

/// What mix_in_double is given: doubles that no T holds.
template <class T>
std::vector<std::vector<double>> doubles_near(const std::vector<std::vector<T>>& g) {
  auto doubles = std::vector(g.size(), std::vector<double>(g[0].size()));
  for (std::size_t i = 0; i < g.size(); ++i)
    for (std::size_t x = 0; x < g[i].size(); ++x)
      doubles[i][x] = to_double(g[i][x]) + 0x1p-30 * to_double(g[(i + 1) % g.size()][x]);
  return doubles;
}

/// mix_in_double: sums of the vectors in double, and elements of T from doubles.
template <class T, class Space>
std::pair<std::vector<double>, std::vector<T>> mixed_in_double(const Space& space, const slice& window,
                                                               const std::vector<std::vector<T>>& g,
                                                               const std::vector<std::vector<double>>& doubles) {
  uniform_numbers uniform(10);
  std::vector<double> weights(window.segments.size() * g.size());
  for (double& one : weights) one = uniform.below(5) == 0 ? 0 : uniform();
  std::pair found{std::vector<double>(g[0].size(), 9), std::vector<T>(g[0].size(), from_double<T>(9))};
  const auto from = pointers(g, window.origin);
  const auto from_doubles = pointers(doubles, window.origin);
  space.template mix_in_double<T, double>(window, from, weights.data(), found.first.data() + window.origin);
  space.template mix_in_double<double, T>(window, from_doubles, weights.data(), found.second.data() + window.origin);
  return found;
}

/// One for each number of threads and instruction set: to start the threads takes longer than what they do here.
threads_space started(std::size_t threads, const serial_space& serial) {
  static std::vector<std::pair<serial_space, threads_space>> all;
  for (const auto& [kernels, space] : all)
    if (space.threads() == threads && kernels == serial) return space;
  return all.emplace_back(serial, eager_threads(threads, serial)).second;
}

/// Everything that a space computes, by these numbers of threads, against serial_space.
template <class T>
void check_as_serial(const slice& window, const std::vector<std::vector<T>>& g, const serial_space& serial,
                     const std::vector<std::size_t>& numbers_of_threads) {
  CAPTURE(g.size());
  CAPTURE(window.range.size());
  const auto gram = measured(serial, window, g, false), accurate = measured(serial, window, g, true);
  const auto out = mixed(serial, window, g);
  const auto doubles = doubles_near(g);
  const auto in_double = mixed_in_double(serial, window, g, doubles);
  for (const std::size_t threads : numbers_of_threads) {
    CAPTURE(threads);
    const auto exec = started(threads, serial);
    CHECK(same_bits(measured(exec, window, g, false), gram));
    CHECK(same_bits(measured(exec, window, g, true), accurate));
    CHECK(same_bits(mixed(exec, window, g), out));
    const auto [sums, rounded] = mixed_in_double(exec, window, g, doubles);
    CHECK(same_bits(sums, in_double.first));
    CHECK(same_bits(rounded, in_double.second));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("does what the concept asks for", T, ADASUM_TEST_SCALARS) {
  const std::size_t threads = sizeof(T) == 8 ? 8 : sizeof(T) == 4 ? 3 : 2;
  CHECK_NOTHROW(check_execution_space<T>(started(threads, serial_space())));
}

TEST_CASE("so it does with the limits that users have") {
  CHECK_NOTHROW(check_execution_space<float>(threads_space(2)));
}

TEST_CASE_TEMPLATE("long segments that end anywhere in a block: the bits of serial_space", T, ADASUM_TEST_FORMATS) {
  // Of one or two vectors, a block has up to 4096 elements, of more of them 1024 or fewer.
  const std::size_t longest = 6 * 4096 + 40;
  const auto g = random_gradients<T>(9, longest, 1);
  const std::vector<std::size_t> counts{1, 2, 3, 9};
  std::size_t turn = 0;  // each instruction set has other numbers of vectors with each length
  for (const auto set : every_instruction_set()) {
    CAPTURE(std::string(to_string(set)));
    for (const std::size_t length :
         sizes{2 * 4096, 2 * 4096 + 1, 3 * 4096 - 1, 4 * 4096 + 13, 6 * 4096 + 16, longest}) {
      const auto n = counts[turn % counts.size()];
      const std::vector some(g.begin(), g.begin() + static_cast<std::ptrdiff_t>(n));
      const segments cut{length};
      check_as_serial<T>(whole(cut), some, serial_space(set), {turn / 4 % 2 + 1, turn / 4 % 2 == 0 ? 8u : 3u});
      ++turn;
    }
    ++turn;
  }
}

TEST_CASE_TEMPLATE("windows of segments, short and long, that begin and end inside them", T, ADASUM_TEST_FORMATS) {
  const std::size_t length = 20000;
  const std::vector<std::vector<std::vector<T>>> gradients{random_gradients<T>(1, length, 1, gradient_kind::scaled),
                                                           random_gradients<T>(2, length, 2, gradient_kind::scaled),
                                                           random_gradients<T>(5, length, 5, gradient_kind::scaled)};
  std::size_t turn = 0;  // each window has the next number of vectors
  for (const auto& cut : {segments{5, 0, 9000, 1, 3, 4500, 0, 16, 6475}, segments(random_segments(length, 300, 1)),
                          segments(random_segments(length, 4, 2)), segments{length, std::size_t{0}}})
    for (const auto& range : {index_range{0, length}, {3, length - 1}, {4097, 4100}, {100, 18000}, {7, 7}})
      for (const std::size_t origin : {std::size_t{0}, range.begin}) {
        const std::size_t threads = turn / 2 % 2 == 0 ? 3 : 8;
        check_as_serial<T>(slice{cut, range, origin}, gradients[turn % 3], serial_space(), {threads});
        ++turn;
      }
}

TEST_CASE_TEMPLATE("many vectors, for which kernels allocate", T, float, double) {
  const auto g = random_gradients<T>(66, 2500, 3);  // more than the 64 for which there is room
  const segments cut{2100, 400};
  check_as_serial<T>(whole(cut), g, serial_space(), {1, 2, 3, 8});
}

TEST_CASE("of vectors that together are longer than the caches, the kernels make shorter blocks") {
  const auto g = random_gradients<float>(6, 25000, 4);  // 600 kB
  const segments cut{24500, 500};
  check_as_serial<float>(whole(cut), g, serial_space(), {1, 2, 3, 8});
}

TEST_CASE_TEMPLATE("zeros, underflow, Inf and NaN", T, double, float) {
  const std::size_t length = 3 * 4096 + 100;
  const segments cut{length};
  for (const std::size_t n : sizes{2, 3}) {
    auto g = random_gradients<T>(n, length, 5);
    const auto check = [&] { check_as_serial<T>(whole(cut), g, serial_space(), {2, 3}); };
    std::ranges::fill(g[0], T{0});
    check();
    g[0][9000] = std::numeric_limits<T>::denorm_min();
    check();
    for (T& x : g[0]) x = std::numeric_limits<T>::denorm_min();
    check();
    for (std::size_t x = 4200; x < length; ++x) g[0][x] = T{1};
    check();
    g[0][10000] = infinity<T>();
    check();
    g[1][length - 1] = quiet_nan<T>();
    check();
  }
}

TEST_CASE_TEMPLATE("copies", T, ADASUM_TEST_FORMATS) {
  for (const std::size_t length : sizes{0, 1, 4095, 4097, 15001}) {
    const auto values = random_gradients<T>(1, length, 6).front();
    for (const std::size_t threads : sizes{1, 2, 3, 8}) {
      const auto exec = started(threads, serial_space());
      std::vector<T> copied(length);
      exec.copy(values.data(), copied.data(), length);
      CHECK(same_bits(copied, values));
      if constexpr (is_16_bit<T>) {
        std::vector<float> wide(length), expected(length);
        exec.copy(values.data(), wide.data(), length);
        serial_space().copy(values.data(), expected.data(), length);
        CHECK(same_bits(wide, expected));
        exec.copy(static_cast<const float*>(wide.data()), copied.data(), length);
        CHECK(same_bits(copied, values));
      }
    }
  }
}

namespace {

/// Pairs, trees and rules of n vectors, by these spaces against serial_space.
template <class T>
void check_calls(const std::vector<std::vector<T>>& g, const segments& cut, const std::vector<threads_space>& spaces) {
  std::vector<T> out(cut.total());
  const auto by_serial = [&](const auto& call) {
    std::vector<T> expected(cut.total());
    call(serial_space(), expected);
    return expected;
  };
  const auto pair = [&](const auto& exec, auto& to) { adasum_pair(exec, g[0], g[1], to, cut); };
  const auto tree = [&](const auto& exec, auto& to) { adasum_tree(exec, g, to, cut); };
  const auto krum = [&](bool per_segment) {
    return [&, per_segment](const auto& exec, auto& to) {
      combine(exec, g, to, rules::multi_krum{.byzantine = 1, .selected = 2, .per_segment = per_segment}, cut);
    };
  };
  const auto of_pair = by_serial(pair), of_tree = by_serial(tree), of_all = by_serial(krum(false)),
             of_each = by_serial(krum(true));
  for (const auto& exec : spaces) {
    CAPTURE(exec.threads());
    const auto check = [&](const auto& call, const std::vector<T>& expected) {
      call(exec, out);
      CHECK(same_bits(out, expected));
    };
    check(pair, of_pair);
    auto in_place = g[1];
    adasum_pair(exec, g[0], in_place, in_place, cut);
    CHECK(same_bits(in_place, of_pair));
    check(tree, of_tree);
    check(krum(false), of_all);
    check(krum(true), of_each);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("pairs, trees and other rules of n vectors", T, float, double) {
  const std::size_t length = 20000;
  const auto g = random_gradients<T>(6, length, 7);
  std::vector<threads_space> spaces;
  for (const std::size_t threads : sizes{1, 2, 3, 8}) spaces.push_back(started(threads, serial_space()));
  for (const auto& cut : {segments{length}, segments{7000, 3, 0, 12997}, segments(random_segments(length, 161, 3))})
    check_calls(g, cut, spaces);
}

TEST_CASE_TEMPLATE("the same with the limits that users have", T, float, double) {
  const std::size_t length = (std::size_t{5} << 20) / 6 / sizeof(T);  // trees are long enough to wake the workers
  const auto g = random_gradients<T>(6, length, 7);
  check_calls(g, segments{length}, {threads_space(3)});
  check_calls(g, segments{length / 3, 3, 0, length - length / 3 - 3}, {threads_space(sizeof(T) == 4 ? 2 : 8)});
}

TEST_CASE("segments that inner products cannot decide") {
  const segments cut{20000, 7, 20000};
  auto g = random_gradients<float>(4, cut.total(), 8, gradient_kind::opposed);
  for (std::size_t x = 0; x < 20000; ++x) g[1][x] = -g[0][x];
  for (auto& vector : g)
    for (std::size_t x = 20000; x < 20007; ++x) vector[x] *= 1e-30f;
  std::vector<float> out(cut.total()), expected(cut.total());
  const auto right = adasum_tree(serial_space(), g, expected, cut);
  CHECK(right.recombined_segments() > 0);
  const auto found = adasum_tree(eager_threads(3), g, out, cut);
  CHECK(found.recombined_segments() == right.recombined_segments());
  CHECK(same_bits(out, expected));
}

TEST_CASE("several threads use one object and its copies at once") {
  const auto g = random_gradients<float>(3, 12000, 9);
  const segments cut{9000, 3000};
  std::vector<float> expected(cut.total());
  adasum_tree(serial_space(), g, expected, cut);
  const auto exec = eager_threads(3);
  std::vector<int> wrong(4);
  std::vector<std::thread> callers;
  for (std::size_t caller = 0; caller < wrong.size(); ++caller)
    callers.emplace_back([&, caller] {
      const auto own = caller % 2 == 0 ? exec : threads_space(exec);
      std::vector<float> out(cut.total());
      for (int run = 0; run < 20; ++run) {
        std::ranges::fill(out, 0.0f);
        adasum_tree(own, g, out, cut);
        wrong[caller] += !same_bits(out, expected);
      }
    });
  for (auto& one : callers) one.join();
  for (const int count : wrong) CHECK(count == 0);
}

TEST_CASE("numbers of threads: what is refused, and which spaces are equal") {
  check_refused([] { threads_space(std::size_t{0}); }, "0 threads");
  check_refused([] { threads_space(threads_space::most_threads + 1); },
                "4097 threads were asked for; there can be 1 to 4096");
  CHECK(threads_space().threads() == detail::threads_backend::processors());
  CHECK(threads_space(3).threads() == 3);
  CHECK(threads_space(3) == threads_space(3));
  CHECK(!(threads_space(3) == threads_space(2)));
  CHECK(!(threads_space(3, serial_space(instruction_set::baseline)) == threads_space(3)) ==
        (best_instruction_set() != instruction_set::baseline));
  CHECK(rounding_of(detail::own_type{}, threads_space(3)) == rounding_of(detail::own_type{}, serial_space()));
}

}  // namespace test_of_exec_threads_space
