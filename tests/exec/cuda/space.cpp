// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda_space, on a device or on the emulated one.
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <adasum/rules/multi_krum.hpp>
#include <adasum/rules/sum.hpp>
#include <adasum/rules/unit_mean.hpp>
#include <adasum/testing/execution_space.hpp>
#include <adasum/tree.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "support/device.hpp"
#include "support/norms.hpp"
#include "support/oracle_errors.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

namespace test_of_exec_cuda_space {

using namespace adasum;
using namespace adasum::test;

namespace {

static_assert(execution_space<cuda_space, float> && execution_space<cuda_space, __nv_bfloat16> &&
              device_space<cuda_space>);
static_assert(stream_ordered_space<cuda_space, __half, rules::adasum>);
static_assert(mutable_gradient<thrust::device_vector<float>> && gradient<const thrust::device_vector<double>>);

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(static_cast<const void*>(a.data()), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
bool all_nan(std::span<const T> values) {
  for (const T value : values)
    if (!std::isnan(to_double(value))) return false;
  return true;
}

/// The four kernels one after the other, whatever fits on the chip.
template <class T>
void combine_in_two_passes(const cuda_space& exec, segments_view cut, std::span<const T* const> vectors, T* out) {
  const auto n = vectors.size();
  const double* const gram = exec.measure_on_device<T>(whole(cut), vectors);
  exec.mix_on_device<T>(whole(cut), vectors, exec.weigh_on_device(rules::adasum{}, gram, cut.size(), n), out);
}

}  // namespace

TEST_CASE_TEMPLATE("memory, measure and mix do what the concept asks for", T, ADASUM_TEST_CUDA_SCALARS) {
  const stream queue;
  CHECK_NOTHROW(check_execution_space<T>(cuda_space(queue)));
}

TEST_CASE_TEMPLATE("enqueue_adasum_tree against long double, segments of every kind, any number of vectors", T,
                   ADASUM_TEST_CUDA_SCALARS) {
  const stream queue;
  const cuda_space exec(queue);
  const segments cut{40, 0, 30001, 1, 9000, 8};
  for (const std::size_t n : sizes{1, 2, 3, 5, 8, 9, 17}) {
    CAPTURE(n);
    const auto g = random_gradients<T>(n, cut.total(), n);
    const auto oracle = oracle_with_errors<T>(rules::adasum{}, g, cut);
    const auto arrays = on_device(g);
    const device_array<T> out(std::vector<T>(cut.total(), quiet_nan<T>()));
    enqueue_adasum_tree(exec, spans_of(arrays), out.all(), cut);
    CHECK(worst_error_over_bound(out.values(), oracle.values, oracle.gram_error, cut) <= 1);
    enqueue_adasum_tree(exec, spans_of(arrays), arrays[n - 1].all(), cut);  // in place
    CHECK(same_bits(arrays[n - 1].values(), out.values()));
  }
}

TEST_CASE_TEMPLATE("adasum_pair and adasum_tree: the result is there when they return", T, ADASUM_TEST_CUDA_SCALARS) {
  const stream queue, other;
  const cuda_space exec(queue), reader(other);
  const segments cut{40, 0, 30001, 1};
  for (const std::size_t n : sizes{2, 3, 9}) {
    CAPTURE(n);
    const auto g = random_gradients<T>(n, cut.total(), n);
    const auto oracle = oracle_with_errors<T>(rules::adasum{}, g, cut);
    const auto arrays = on_device(g);
    device_array<T> out(std::vector<T>(cut.total(), quiet_nan<T>()));
    std::vector<T> seen(cut.total());
    const auto check = [&] {  // by another stream, which does not wait for the first
      reader.transfer(out.all().data(), seen.data(), seen.size() * sizeof(T));
      reader.fence();
      CHECK(worst_error_over_bound(seen, oracle.values, oracle.gram_error, cut) <= 1);
    };
    const auto found = adasum_tree(exec, spans_of(arrays), out.all(), cut);
    CHECK(found.recombined_segments() == 0);
    check();
    if (n != 2) continue;
    out.assign(g[0]);
    adasum_pair(exec, out.all(), arrays[1].all(), out.all(), cut);
    check();
  }
}

TEST_CASE_TEMPLATE("results do not depend on where vectors lie", T, ADASUM_TEST_CUDA_SCALARS) {
  const cuda_space exec;
  const segments cut{4096, 20001, 3};
  for (const std::size_t n : sizes{2, 3, 10}) {
    const auto g = random_gradients<T>(n, cut.total(), n);
    std::vector<std::vector<T>> results;
    for (const std::size_t shift : sizes{0, 1, 3}) {
      const auto arrays = on_device(g, shift);
      enqueue_adasum_tree(exec, spans_of(arrays), arrays[0].all(), cut);
      results.push_back(arrays[0].values());
    }
    CHECK(same_bits(results[0], results[1]));
    CHECK(same_bits(results[0], results[2]));
  }
}

TEST_CASE_TEMPLATE("a pair on the chip and in two passes: the same bits, at sizes around what fits", T,
                   ADASUM_TEST_CUDA_SCALARS) {
  const cuda_space exec;
  constexpr auto tile = detail::cuda::tile_length<format_of<T>>;
  for (const std::size_t length :
       {std::size_t{1}, tile, 3 * tile + 5, 8 * tile, 9 * tile, 12 * tile, 12 * tile + 1, 15 * tile}) {
    CAPTURE(length);
    const segments cut{length / 3, length - length / 3};
    const auto g = random_gradients<T>(2, length, length);
    const auto arrays = on_device(g);
    const auto vectors = addresses_of(arrays);
    const device_array<T> once(g[0]), twice(g[0]);
    enqueue_adasum_pair(exec, arrays[0].all(), arrays[1].all(), once.all(), cut);
    combine_in_two_passes<T>(exec, cut, std::span<const T* const>(vectors), twice.all().data());
    CHECK(same_bits(once.values(), twice.values()));
    const auto oracle = oracle_with_errors<T>(rules::adasum{}, g, cut);
    CHECK(worst_error_over_bound(once.values(), oracle.values, oracle.gram_error, cut) <= 1);
  }
}

TEST_CASE_TEMPLATE("measure and mix of windows that begin and end inside segments, as serial_space", T,
                   ADASUM_TEST_CUDA_SCALARS) {
  const cuda_space exec;
  const serial_space serial;
  const segments cut{37, 0, 30000, 5};
  for (const std::size_t n : sizes{1, 3, 11}) {
    const auto g = random_gradients<T>(n, cut.total(), n);
    const auto arrays = on_device(g);
    const auto vectors = addresses_of(arrays);
    std::vector<const T*> here;
    for (const auto& one : g) here.push_back(one.data());
    for (const auto& range : {index_range{20, 30030}, {0, 37}, {37, 37}, {10000, 10001}}) {
      const slice window{cut, range, 0};
      std::vector<double> gram(cut.size() * packed_size(n), 7), expected(gram.size());
      exec.measure<T>(window, std::span<const T* const>(vectors), gram.data());
      exec.fence();
      serial.measure<T>(window, std::span<const T* const>(here), expected.data());
      // One set of float lanes differs from sums in double by 2⁻²⁴ of the vectors' norms.
      for (std::size_t p = 0; p < gram.size(); ++p)
        CHECK(gram[p] == doctest::Approx(expected[p]).epsilon(1e-5).scale(1e4));
      uniform_numbers uniform(5);
      auto weights = uniform.vector(cut.size() * n);
      weights[0] = weights[n] = 0;
      std::vector<T> as_expected(cut.total(), from_double<T>(9));
      const device_array<T> mixed(as_expected);
      exec.mix<T>(window, std::span<const T* const>(vectors), weights.data(), mixed.all().data());
      serial.mix<T>(window, std::span<const T* const>(here), weights.data(), as_expected.data());
      const auto values = mixed.values();
      const double unit = static_cast<double>(rounding_to<T>.unit);
      for (std::size_t x = 0; x < values.size(); ++x)
        CHECK(std::abs(to_double(values[x]) - to_double(as_expected[x])) <=
              (4 * unit + 0x1p-22) * static_cast<double>(n));
    }
  }
}

TEST_CASE_TEMPLATE("edges: zero is neutral, opposed gradients vanish, NaN stays in its segment", T,
                   ADASUM_TEST_CUDA_SCALARS) {
  const cuda_space exec;
  const segments cut{100, 5000, 64, 200};
  auto g = random_gradients<T>(2, cut.total(), 4);
  for (std::size_t x = 0; x < 100; ++x) g[0][x] = from_double<T>(0);                       // 0, b → b
  for (std::size_t x = 100; x < 5100; ++x) g[1][x] = from_double<T>(-to_double(g[0][x]));  // a, −a → 0
  g[1][5110] = quiet_nan<T>();
  const auto arrays = on_device(g);
  const device_array<T> out(g[0]);
  const auto check = [&] {
    const auto values = out.values();
    for (std::size_t x = 0; x < 100; ++x) CHECK(to_double(values[x]) == to_double(g[1][x]));
    for (std::size_t x = 100; x < 5100; ++x) CHECK(to_double(values[x]) == 0);
    CHECK(all_nan(std::span<const T>(values).subspan(5100, 64)));
    for (std::size_t x = 5164; x < cut.total(); ++x) CHECK(std::isfinite(to_double(values[x])));
  };
  enqueue_adasum_pair(exec, arrays[0].all(), arrays[1].all(), out.all(), cut);
  check();
  const auto vectors = addresses_of(arrays);
  combine_in_two_passes<T>(exec, cut, std::span<const T* const>(vectors), out.all().data());
  check();
  // A cancelled pair is neutral in the tree: (a, −a), (c, 0) → c.
  const std::vector<T> zeros(cut.total(), from_double<T>(0));
  const auto four = on_device(std::vector{g[0], g[1], g[0], zeros});
  enqueue_adasum_tree(exec, spans_of(four), out.all(), cut);
  const auto values = out.values();
  for (std::size_t x = 100; x < 5100; ++x) CHECK(to_double(values[x]) == to_double(g[0][x]));
}

TEST_CASE_TEMPLATE("gradients of any norm, alike and beside others", T, ADASUM_TEST_CUDA_SCALARS) {
  const cuda_space exec;
  const segments cut{12};
  for (const std::size_t n : sizes{2, 3})
    for_each_choice_of_norms<T>(n, cut.total(), [&](const auto& g) {
      CAPTURE(n);
      const auto oracle = oracle_with_errors<T>(rules::adasum{}, g, cut);
      const auto gradients = on_device(g);
      const device_array<T> out(std::vector<T>(cut.total()));
      const auto check = [&] { CHECK(worst_error_over_bound(out.values(), oracle.values, oracle.either(), cut) <= 1); };
      const auto found = adasum_tree(exec, spans_of(gradients), out.all(), cut);
      check();
      if (found.recombined_segments() > 0) return;
      enqueue_adasum_tree(exec, spans_of(gradients), out.all(), cut);
      check();
      if (n > 2) return;
      enqueue_adasum_pair(exec, gradients[0].all(), gradients[1].all(), out.all(), cut);
      check();
    });
}

TEST_CASE("floats that nearly cancel are combined in double by calls that wait") {
  const cuda_space exec;
  for (const double angle : {1e-2, 1e-6}) {
    CAPTURE(angle);
    auto g = random_gradients<float>(2, 3000, 8);
    for (std::size_t x = 0; x < 3000; ++x) g[1][x] = static_cast<float>(-g[0][x] * (1 + angle * g[1][x]));
    const auto oracle = oracle_combine(rules::adasum{}, g, segments{3000});
    const auto arrays = on_device(g);
    const device_array<float> out(g[0]);
    CHECK(adasum_tree(exec, spans_of(arrays), out.all()).recombined_segments() == 1);
    const auto values = out.values();
    real error = 0, whole = 0;
    for (std::size_t x = 0; x < 3000; ++x) {
      const real difference = static_cast<real>(values[x]) - oracle[x];
      error += difference * difference;
      whole += oracle[x] * oracle[x];
    }
    CHECK(std::sqrt(error / whole) <= 1e-6L);
  }
}

TEST_CASE("squares that leave the range of double: NaN when enqueued, right by calls that wait") {
  const cuda_space exec;
  const device_array<double> a(std::vector<double>(300, 1e200)), b(std::vector<double>(300, 1e200));
  const device_array<double> out(std::vector<double>(300, 0));
  enqueue_adasum_pair(exec, a.all(), b.all(), out.all());
  CHECK(all_nan(std::span<const double>(out.values())));
  adasum_pair(exec, a.all(), b.all(), out.all());
  for (const double value : out.values()) CHECK(value == doctest::Approx(1e200));
  const auto found = combine(exec, std::vector{a.all(), b.all()}, out.all(), rules::adasum{});
  CHECK(found.recombined_segments() == 1);
  for (const double value : out.values()) CHECK(value == doctest::Approx(1e200));
  // A square that underflows is not taken for that of a zero vector.
  const device_array<double> tiny(std::vector<double>(300, 1e-200));
  combine(exec, std::vector{tiny.all(), tiny.all()}, out.all(), rules::adasum{});
  for (const double value : out.values()) CHECK(value == doctest::Approx(1e-200));
}

TEST_CASE("combine() gives the report, for any rule") {
  const cuda_space exec;
  const segments cut{5000, 77};
  const auto g = random_gradients<float>(5, cut.total(), 1);
  const auto arrays = on_device(g);
  const device_array<float> out(g[0]);
  std::vector<float> expected(cut.total());
  const auto check = [&](auto rule) {
    auto found = combine(exec, spans_of(arrays), out.all(), rule, cut);
    auto host = combine(serial_space{}, g, expected, rule, cut);
    const auto values = out.values();
    for (std::size_t x = 0; x < values.size(); ++x) CHECK(values[x] == doctest::Approx(expected[x]).epsilon(1e-5));
    for (std::size_t k = 0; k < cut.size(); ++k)
      CHECK(found.norm(3, k) == doctest::Approx(host.norm(3, k)).epsilon(1e-6));
  };
  check(rules::adasum{});
  check(rules::unit_mean{});
  check(rules::sum{});
  check(rules::multi_krum{});
}

TEST_CASE("thrust vectors are gradients as they are") {
  const cuda_space exec;
  const auto g = random_gradients<float>(2, 1000, 2);
  const thrust::device_vector<float> a(g[0].begin(), g[0].end()), b(g[1].begin(), g[1].end());
  thrust::device_vector<float> out(1000);
  enqueue_adasum_pair(exec, a, b, out);
  exec.fence();
  std::vector<float> values(1000), expected(1000);
  detail::cuda::check("cudaMemcpy",
                      cudaMemcpy(values.data(), thrust::raw_pointer_cast(out.data()), 4000, cudaMemcpyDeviceToHost));
  adasum_pair(serial_space{}, g[0], g[1], expected);
  for (std::size_t x = 0; x < values.size(); ++x) CHECK(values[x] == doctest::Approx(expected[x]).epsilon(1e-6));
  thrust::device_vector<float> shorter(999);
  CHECK_THROWS_WITH_AS(adasum_pair(exec, a, b, shorter), doctest::Contains("adasum_pair: gradient 0"), bad_input);
  CHECK_THROWS_WITH_AS(enqueue_adasum_pair(exec, a, b, shorter), doctest::Contains("999"), bad_input);
}

TEST_CASE("copies between float and 16 bits, rounded to nearest even") {
  const cuda_space exec;
  const auto g = random_gradients<float>(1, 5000, 2);
  const device_array<float> from(g[0]), back(g[0]);
  const device_array<__nv_bfloat16> packed{std::vector<__nv_bfloat16>(5000)};
  exec.copy(static_cast<const float*>(from.all().data()), packed.all().data(), 5000);
  exec.copy(static_cast<const __nv_bfloat16*>(packed.all().data()), back.all().data(), 5000);
  const auto values = back.values();
  for (std::size_t x = 0; x < values.size(); ++x)
    CHECK(values[x] == static_cast<float>(static_cast<__nv_bfloat16>(g[0][x])));
}

TEST_CASE("memory of the host is refused by name, before anything changes") {
  const cuda_space exec;
  const device_array<float> a(std::vector<float>(10, 1)), out(std::vector<float>(10, 5));
  std::vector<float> host(10);
  if (detail::cuda::attribute(cudaDevAttrPageableMemoryAccess, exec.device()) != 0) return;  // this device reads it
  CHECK_THROWS_WITH_AS(adasum_pair(exec, a.all(), host, out.all()),
                       doctest::Contains("gradient 1 does not lie in memory"), bad_input);
  CHECK_THROWS_WITH_AS(enqueue_adasum_pair(exec, a.all(), host, out.all()),
                       doctest::Contains("gradient 1 does not lie in memory"), bad_input);
  CHECK_THROWS_WITH_AS(adasum_tree(exec, std::vector{a.all()}, host), doctest::Contains("the output does not lie"),
                       bad_input);
  CHECK_THROWS_WITH_AS(enqueue_adasum_tree(exec, std::vector{a.all()}, host),
                       doctest::Contains("the output does not lie"), bad_input);
  CHECK(out.values()[0] == 5);
}

TEST_CASE("a CUDA graph of a pair and a tree, launched with other numbers") {
  const stream queue;
  const cuda_space exec(queue);
  const segments cut{30000, 1, 70000};
  const auto first = random_gradients<float>(10, cut.total(), 1), second = random_gradients<float>(10, cut.total(), 2);
  auto arrays = on_device(first);
  const device_array<float> pair(first[0]), tree(first[0]);
  const auto both = [&] {
    enqueue_adasum_pair(exec, arrays[0].all(), arrays[1].all(), pair.all(), cut);
    enqueue_adasum_tree(exec, spans_of(arrays), tree.all(), cut);
  };
  const graph too_early(queue,
                        [&] { CHECK_THROWS_WITH_AS(both(), doctest::Contains("once before the capture"), bad_input); });
  both();
  const graph recorded(queue, both);
  for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].assign(second[i]);
  recorded.launch(queue);
  const auto pair_by_graph = pair.values(), tree_by_graph = tree.values();
  both();
  CHECK(same_bits(pair.values(), pair_by_graph));
  CHECK(same_bits(tree.values(), tree_by_graph));
}

TEST_CASE("what fails in the runtime is named") {
  CHECK_THROWS_WITH_AS(detail::cuda::check("cudaMallocAsync", cudaErrorMemoryAllocation),
                       doctest::Contains("cudaMallocAsync"), cuda_error);
  try {
    detail::cuda::check("cudaStreamSynchronize", cudaErrorInvalidValue);
  } catch (const cuda_error& failed) {
    CHECK(std::strcmp(failed.call(), "cudaStreamSynchronize") == 0);
    CHECK(failed.code() == cudaErrorInvalidValue);
  }
}

}  // namespace test_of_exec_cuda_space
