// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/adasum.hpp>
#include <adasum/exec/kokkos.hpp>
#include <adasum/exec/kokkos/regions.hpp>
#include <adasum/testing/execution_space.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/norms.hpp"
#include "support/oracle_errors.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

namespace test_of_exec_kokkos_space {

using namespace adasum;
using namespace adasum::test;

namespace {

/// Kokkos, from the first test to the end of the program.
struct kokkos_session {
  kokkos_session() {
    struct session {
      session() { Kokkos::initialize(); }
      ~session() { Kokkos::finalize(); }
    };
    static const session started;
  }
};

using space_type = kokkos_space<Kokkos::DefaultHostExecutionSpace>;
static_assert(execution_space<space_type, float> && execution_space<space_type, double> && !device_space<space_type>);
/// The kernels for devices, on the host.
using team_space = kokkos_space<Kokkos::DefaultHostExecutionSpace, false>;
static_assert(execution_space<team_space, float> && device_space<team_space>);
static_assert(gradient<Kokkos::View<float*>> && mutable_gradient<Kokkos::View<float*>>);
static_assert(gradient<Kokkos::View<const double*>> && !mutable_gradient<Kokkos::View<const double*>>);

template <class T>
std::vector<const T*> pointers(const std::vector<std::vector<T>>& vectors) {
  std::vector<const T*> at;
  for (const auto& vector : vectors) at.push_back(vector.data());
  return at;
}

template <class T>
Kokkos::View<T*, Kokkos::HostSpace> view_of(const std::vector<T>& values) {
  Kokkos::View<T*, Kokkos::HostSpace> view("values", values.size());
  std::copy(values.begin(), values.end(), view.data());
  return view;
}

}  // namespace

TEST_CASE("tiles cover each segment's elements once, in order, and never cross a boundary") {
  const segments cut{5, 0, 100, 1, 33};
  for (const auto& range : {index_range{0, 139}, {3, 139}, {7, 104}, {5, 5}, {105, 106}})
    for (const std::size_t longest : sizes{1, 7, 32, 1000})
      for (const std::size_t origin : {std::size_t{0}, range.begin}) {
        const slice window{cut, range, origin};
        auto next = range.begin;
        for (const auto& one : detail::tiles_of(window, longest)) {
          CHECK(one.begin + origin == next);
          CHECK(one.end > one.begin);
          CHECK(one.end - one.begin <= longest);
          const auto segment = segments_view(cut).range(one.segment);
          CHECK(one.begin + origin >= segment.begin);
          CHECK(one.end + origin <= segment.end);
          next = one.end + origin;
        }
        CHECK(next == range.end);
      }
}

TEST_CASE_TEMPLATE("both kinds of kernels do what the concept asks for", T, ADASUM_TEST_FORMATS) {
  const kokkos_session session;
  CHECK_NOTHROW(check_execution_space<T>(space_type{}));
  CHECK_NOTHROW(check_execution_space<T>(team_space{}));
}

TEST_CASE_TEMPLATE("adasum_tree against long double, several tiles to a segment", T, ADASUM_TEST_SCALARS) {
  const kokkos_session session;
  const segments cut{40, 0, 50001, 1, 20000};
  const auto check = [&](const auto& exec, std::size_t n) {
    CAPTURE(n);
    const auto g = random_gradients<T>(n, cut.total(), n);
    const auto oracle = oracle_with_errors<T>(rules::adasum{}, g, cut);
    std::vector<T> out(cut.total());
    const auto found = adasum_tree(exec, g, out, cut);
    CHECK(found.recombined_segments() == 0);
    CHECK(worst_error_over_bound(out, oracle.values, oracle.gram_error, cut) <= 1);
    // In place, and with the other space: the same numbers but for the order of additions.
    auto in_place = g;
    adasum_tree(exec, in_place, in_place[0], cut);
    CHECK(std::memcmp(in_place[0].data(), out.data(), out.size() * sizeof(T)) == 0);
  };
  for (const std::size_t n : sizes{1, 2, 3, 8}) {
    check(space_type(), n);
    check(team_space(), n);
  }
}

TEST_CASE_TEMPLATE("gradients of any norm, alike and beside others", T, ADASUM_TEST_FORMATS) {
  const kokkos_session session;
  const segments cut{12};
  for (const std::size_t n : sizes{2, 3})
    for_each_choice_of_norms<T>(n, cut.total(), [&](const auto& g) {
      CAPTURE(n);
      const auto oracle = oracle_with_errors<T>(rules::adasum{}, g, cut);
      std::vector<T> out(cut.total());
      adasum_tree(space_type(), g, out, cut);
      CHECK(worst_error_over_bound(out, oracle.values, oracle.either(), cut) <= 1);
      adasum_tree(team_space(), g, out, cut);
      CHECK(worst_error_over_bound(out, oracle.values, oracle.either(), cut) <= 1);
    });
}

TEST_CASE_TEMPLATE("measure and mix of windows that begin and end inside segments, as serial_space", T,
                   ADASUM_TEST_FORMATS) {
  const kokkos_session session;
  const space_type exec;
  const team_space teams;
  const serial_space serial;
  const segments cut{37, 0, 30000, 5};
  const auto g = random_gradients<T>(3, cut.total(), 1);
  for (const auto& range : {index_range{20, 30030}, {0, 37}, {37, 37}, {10000, 10001}}) {
    const slice window{cut, range, 0};
    std::vector<double> gram(cut.size() * packed_size(3), 7), expected(gram.size());
    exec.measure<T>(window, pointers(g), gram.data());
    serial.measure<T>(window, pointers(g), expected.data());
    for (std::size_t p = 0; p < gram.size(); ++p) CHECK(gram[p] == doctest::Approx(expected[p]).epsilon(1e-11));
    teams.measure<T>(window, pointers(g), gram.data());
    for (std::size_t p = 0; p < gram.size(); ++p) CHECK(gram[p] == doctest::Approx(expected[p]).epsilon(1e-11));
    const std::vector<double> weights{1, 2, 3, 0.5, 0, -1, 0.25, -0.5, 1, 0, 0, 0};
    std::vector<T> mixed(cut.total(), from_double<T>(9)), as_expected = mixed;
    exec.mix<T>(window, pointers(g), weights.data(), mixed.data());
    serial.mix<T>(window, pointers(g), weights.data(), as_expected.data());
    CHECK(std::memcmp(mixed.data(), as_expected.data(), mixed.size() * sizeof(T)) == 0);
    std::ranges::fill(mixed, from_double<T>(9));
    teams.mix<T>(window, pointers(g), weights.data(), mixed.data());
    // The same sums, perhaps fused, rounded once.
    const double unit = static_cast<double>(rounding_to<T>.unit);
    for (std::size_t x = 0; x < mixed.size(); ++x)
      CHECK(std::abs(to_double(mixed[x]) - to_double(as_expected[x])) <=
            2 * unit * std::abs(to_double(as_expected[x])) + 0x1p-24 * unit);
  }
}

TEST_CASE("a reduction by the kernels for devices, whose memory goes through the host") {
  const kokkos_session session;
  const segments cut{300, 0, 40000};
  auto gradient = random_gradients<float>(1, cut.total(), 5)[0];
  const auto before = gradient;
  combine_allreduce(team_space(), self_communicator{}, gradient, rules::adasum{}, cut, schedules::all_to_all{});
  CHECK(gradient == before);
  std::vector<float> copy(gradient.size());
  const team_space exec;
  exec.upload(gradient.data(), copy.data(), copy.size() * sizeof(float));
  exec.fence();
  CHECK(copy == gradient);
}

TEST_CASE("views are gradients as they are: const, unmanaged, subviews") {
  const kokkos_session session;
  const space_type exec;
  const segments cut{100, 28};
  const auto g = random_gradients<float>(2, cut.total(), 3);
  std::vector<float> expected(cut.total());
  adasum_pair(serial_space{}, g[0], g[1], expected, cut);

  const Kokkos::View<const float*, Kokkos::HostSpace> a = view_of(g[0]);
  auto memory = g[1];
  const Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>> b(memory.data(),
                                                                                           memory.size());
  const Kokkos::View<float*, Kokkos::HostSpace> room("room", 200);
  const auto out = Kokkos::subview(room, std::pair<std::size_t, std::size_t>(50, 50 + cut.total()));
  adasum_pair(exec, a, b, out, cut);
  for (std::size_t x = 0; x < cut.total(); ++x) CHECK(out(x) == doctest::Approx(expected[x]).epsilon(1e-6));
  CHECK(room(49) == 0);
  CHECK(room(50 + cut.total()) == 0);

  adasum_tree(exec, std::vector{a, a, a}, out, cut);
  for (std::size_t x = 0; x < cut.total(); ++x) CHECK(out(x) == doctest::Approx(g[0][x]).epsilon(1e-6));
  CHECK_THROWS_WITH_AS(adasum_pair(exec, a, b, room, cut), doctest::Contains("200"), bad_input);
}

TEST_CASE("a plan, in its own buffer and on a view") {
  const kokkos_session session;
  const segments cut{300, 0, 40000};
  const auto gradients = random_gradients<float>(1, cut.total(), 5);
  const self_communicator comm;
  auto plan = plan_allreduce<float>(space_type{}, comm, cut);
  std::ranges::copy(gradients[0], plan.buffer().begin());
  plan();
  CHECK(std::ranges::equal(plan.buffer(), gradients[0]));
  auto view = view_of(gradients[0]);
  combine_allreduce(space_type{}, comm, view, rules::unit_mean{}, cut, schedules::all_to_all{});
  double square = 0;
  for (std::size_t x = 0; x < 300; ++x) square += static_cast<double>(view(x)) * static_cast<double>(view(x));
  CHECK(square == doctest::Approx(1));
}

TEST_CASE("the steps of reductions are regions of Kokkos") {
  const kokkos_session session;
  static std::vector<std::string> begun;
  static int open = 0;
  begun.clear();
  Kokkos::Tools::Experimental::set_push_region_callback([](const char* name) {
    begun.emplace_back(name);
    ++open;
  });
  Kokkos::Tools::Experimental::set_pop_region_callback([] { --open; });
  set_tracer(kokkos_tracer());
  auto view = view_of(std::vector<float>(100, 1));
  combine_allreduce(space_type{}, self_communicator{}, view, rules::unit_mean{}, segments{100},
                    schedules::all_to_all{});
  set_tracer(nullptr);
  Kokkos::Tools::Experimental::set_push_region_callback(nullptr);
  Kokkos::Tools::Experimental::set_pop_region_callback(nullptr);
  CHECK(open == 0);
  CHECK(std::ranges::count(begun, "measure") == 1);
}

}  // namespace test_of_exec_kokkos_space
