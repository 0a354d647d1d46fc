// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// serial_space::mix with every instruction set, against long double, element by element.
#include <adasum/exec/serial.hpp>
#include <adasum/exec/serial/blocks.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/every_instruction_set.hpp"
#include "support/oracle_errors.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

namespace test_of_exec_serial_mix {

using namespace adasum;
using namespace adasum::test;

namespace {

/// Vectors, weights of every segment, and a window: mixed by the kernel, checked against Σ wᵢ vᵢ.
template <class T>
struct mixing {
  std::vector<std::vector<T>> vectors;
  segments cut;
  std::vector<double> weights;

  mixing(std::size_t n, const segments& lengths, std::uint64_t seed)
      : vectors(random_gradients<T>(n, lengths.total(), seed)),
        cut(lengths),
        weights(uniform_numbers(seed).vector(n * lengths.size())) {}

  std::vector<const T*> pointers(std::size_t from) const {
    std::vector<const T*> at;
    for (const auto& vector : vectors) at.push_back(vector.data() + from);
    return at;
  }

  void run(instruction_set set, const slice& window, T* out_at_origin) const {
    serial_space(set).mix<T>(window, pointers(window.origin), weights.data(), out_at_origin);
  }

  void check(std::size_t k, std::size_t x, T computed) const {
    const auto n = vectors.size();
    real exact = 0, mass = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto term = static_cast<real>(weights[k * n + i]) * static_cast<real>(to_double(vectors[i][x]));
      exact += term;
      mass += std::abs(term);
    }
    REQUIRE(std::abs(static_cast<real>(to_double(computed)) - exact) <= mix_error<T>(n, mass, std::abs(exact)));
  }
};

}  // namespace

TEST_CASE_TEMPLATE("numbers of vectors × lengths", T, ADASUM_TEST_FORMATS) {
  for (const auto set : every_instruction_set())
    for (const std::size_t n : sizes{1, 2, 3, 4, 5, 8, 9, 17, 65})
      for (const std::size_t length : sizes{1, 3, 8, 15, 16, 17, 33, 64, 65, 100}) {
        CAPTURE(to_string(set));
        CAPTURE(n);
        CAPTURE(length);
        const mixing<T> mix(n, segments{length}, n + length);
        std::vector<T> out(length);
        mix.run(set, whole(mix.cut), out.data());
        for (std::size_t x = 0; x < length; ++x) mix.check(0, x, out[x]);
      }
}

TEST_CASE_TEMPLATE("past the caches and not, in pieces and not: the same bits, whatever the length", T,
                   ADASUM_TEST_FORMATS) {
  constexpr std::size_t many_bytes = std::size_t{1} << 30;
  for (const auto set : every_instruction_set())
    for (const std::size_t n : sizes{1, 2, 3, 9, 600})
      for (const std::size_t length : sizes{1, 250, 511, 513, 1100, 2100, 300'000}) {
        if (n > (length > 3000 ? 2 : 9) && length > 600) continue;
        CAPTURE(to_string(set));
        CAPTURE(n);
        CAPTURE(length);
        const mixing<T> mix(n, {length}, n + length);
        const auto window = whole(mix.cut);
        std::vector<T> kept(length), in_pieces(length);
        serial_space(set).mix<T>(window, mix.pointers(0), mix.weights.data(), kept.data(), 0);
        // Pieces are too short to be asked for ahead, as whole vectors of 300 000 elements are.
        for (std::size_t begin = 0; begin < length; begin += 4321)
          serial_space(set).mix<T>({mix.cut, {begin, std::min(begin + 4321, length)}, begin}, mix.pointers(begin),
                                   mix.weights.data(), in_pieces.data() + begin, 0);
        CHECK(std::memcmp(in_pieces.data(), kept.data(), length * sizeof(T)) == 0);
        for (const std::size_t offset : sizes{0, 1, 5}) {  // from the beginning of a cache line, and not
          std::vector<T> past(length + 2 * offset, from_double<T>(7));
          serial_space(set).mix<T>(window, mix.pointers(0), mix.weights.data(), past.data() + offset, many_bytes);
          CHECK(std::memcmp(past.data() + offset, kept.data(), length * sizeof(T)) == 0);
          for (std::size_t x = 0; x < offset; ++x)
            REQUIRE(to_double(past[x]) + to_double(past[offset + length + x]) == 14);
        }
        if (n < 10) mix.check(0, length - 1, kept.back());
      }
}

TEST_CASE_TEMPLATE("many vectors from memory, in blocks of elements and some vectors at a time: the same bits", T,
                   ADASUM_TEST_FORMATS) {
  constexpr std::size_t block = 2048;  // elements of a block; a piece is no longer, and too short to come from memory
  for (const auto set : every_instruction_set())
    for (const std::size_t n : sizes{17, 65}) {
      const std::size_t least = (std::size_t{512} << 10) / (n * sizeof(T)) / 2 * 2 + 2;
      for (const std::size_t length : {least + 1, least + 15, least + 2 * block + 33}) {
        CAPTURE(to_string(set));
        CAPTURE(n);
        CAPTURE(length);
        mixing<T> mix(n, {length}, n + length);
        REQUIRE(detail::serial::exceeds_cache(serial_space::bytes_of<T>(whole(mix.cut), n)));
        std::vector<T> expected(length), out(length + 1, from_double<T>(7));
        for (std::size_t begin = 0; begin < length; begin += 999)
          mix.run(set, {mix.cut, {begin, std::min(begin + 999, length)}, begin}, expected.data() + begin);
        mix.run(set, whole(mix.cut), out.data());
        CHECK(std::memcmp(out.data(), expected.data(), length * sizeof(T)) == 0);
        CHECK(to_double(out[length]) == 7);
        for (std::size_t x = 0; x < length; x += 7) mix.check(0, x, out[x]);
        for (const std::size_t i : {std::size_t{0}, std::size_t{8}, n - 1}) {
          auto in_place = mix;
          in_place.run(set, whole(mix.cut), in_place.vectors[i].data());
          CHECK(std::memcmp(in_place.vectors[i].data(), expected.data(), length * sizeof(T)) == 0);
        }
      }
    }
}

TEST_CASE_TEMPLATE("mix_in_double: sums in double, and results from them, from memory and not", T,
                   ADASUM_TEST_FORMATS) {
  constexpr std::size_t n = 17;
  for (const auto set : every_instruction_set())
    for (const std::size_t length : sizes{1, 7, 100, 1001, 3901, 16001}) {
      CAPTURE(to_string(set));
      CAPTURE(length);
      const serial_space exec(set);
      const mixing<T> mix(n, {length}, length);
      const mixing<double> wide(n, {length}, length);
      const auto window = whole(mix.cut);
      std::vector<double> sums(length), sums_in_pieces(length);
      std::vector<T> out(length), in_pieces(length);
      const auto from = mix.pointers(0);
      const auto from_wide = wide.pointers(0);
      exec.mix_in_double<T, double>(window, from, mix.weights.data(), sums.data());
      exec.mix_in_double<double, T>(window, from_wide, wide.weights.data(), out.data());
      for (std::size_t begin = 0; begin < length; begin += 999) {
        const slice piece{mix.cut, {begin, std::min(begin + 999, length)}, begin};
        exec.mix_in_double<T, double>(piece, mix.pointers(begin), mix.weights.data(), sums_in_pieces.data() + begin);
        exec.mix_in_double<double, T>(piece, wide.pointers(begin), wide.weights.data(), in_pieces.data() + begin);
      }
      CHECK(std::memcmp(sums_in_pieces.data(), sums.data(), length * sizeof(double)) == 0);
      CHECK(std::memcmp(in_pieces.data(), out.data(), length * sizeof(T)) == 0);
      for (std::size_t x = 0; x < length; ++x) {
        real exact = 0, mass = 0, exact_wide = 0, mass_wide = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const auto term = static_cast<real>(mix.weights[i]) * static_cast<real>(to_double(mix.vectors[i][x]));
          const auto wide_term = static_cast<real>(wide.weights[i]) * static_cast<real>(wide.vectors[i][x]);
          exact += term;
          mass += std::abs(term);
          exact_wide += wide_term;
          mass_wide += std::abs(wide_term);
        }
        REQUIRE(std::abs(static_cast<real>(sums[x]) - exact) <= mix_error<double>(n, mass, std::abs(exact)));
        REQUIRE(std::abs(static_cast<real>(to_double(out[x])) - exact_wide) <=
                mix_error<T>(n, mass_wide, std::abs(exact_wide)));
      }
    }
}

TEST_CASE_TEMPLATE("a window that begins and ends inside segments; nothing else is written", T, ADASUM_TEST_FORMATS) {
  const T mark = from_double<T>(7);
  for (const auto set : every_instruction_set())
    for (const std::size_t n : sizes{1, 2, 5})
      for (const auto& range : {index_range{20, 431}, {0, 500}, {140, 150}, {137, 138}, {50, 50}}) {
        CAPTURE(to_string(set));
        CAPTURE(n);
        CAPTURE(range.begin);
        const mixing<T> mix(n, segments{0, 37, 100, 1, 0, 200, 162, 0}, n);
        for (const std::size_t origin : {range.begin, range.begin / 2}) {
          std::vector<T> out(500, mark);
          mix.run(set, slice{mix.cut, range, origin}, out.data() + origin);
          for (std::size_t k = 0; k < mix.cut.size(); ++k)
            for (auto x = mix.cut.offset(k); x < mix.cut.offset(k) + mix.cut.length(k); ++x)
              if (range.begin <= x && x < range.end)
                mix.check(k, x, out[x]);
              else
                REQUIRE(to_double(out[x]) == 7);
        }
      }
}

TEST_CASE_TEMPLATE("the same bits wherever vectors and result lie, and in place", T, ADASUM_TEST_FORMATS) {
  for (const std::size_t length : sizes{203, 1203})
    for (const auto set : every_instruction_set())
      for (const std::size_t n : sizes{1, 2, 6}) {
        CAPTURE(to_string(set));
        CAPTURE(n);
        const mixing<T> mix(n, segments{length}, n);
        std::vector<T> expected(length);
        mix.run(set, whole(mix.cut), expected.data());
        const auto same = [&](const T* out) { return std::memcmp(out, expected.data(), length * sizeof(T)) == 0; };
        for (std::size_t offset = 1; offset <= 17; ++offset) {
          auto moved = mix;
          std::vector<const T*> at;
          for (auto& vector : moved.vectors) {
            vector.insert(vector.begin(), offset, quiet_nan<T>());
            at.push_back(vector.data() + offset);
          }
          std::vector<T> out(length + 35, from_double<T>(7));
          serial_space(set).mix<T>(whole(mix.cut), at, mix.weights.data(), out.data() + offset);
          REQUIRE(same(out.data() + offset));
          REQUIRE(to_double(out[offset - 1]) == 7);
          REQUIRE(to_double(out[offset + length]) == 7);
          serial_space(set).mix<T>(whole(mix.cut), at, mix.weights.data(), moved.vectors[0].data() + offset);
          REQUIRE(same(moved.vectors[0].data() + offset));
        }
        for (std::size_t i = 0; i < n; ++i) {
          auto changed = mix;
          changed.run(set, whole(mix.cut), changed.vectors[i].data());
          REQUIRE(same(changed.vectors[i].data()));
        }
      }
}

TEST_CASE_TEMPLATE("the same bits however the window is cut, with weights that are floats and that are not", T,
                   ADASUM_TEST_FORMATS) {
  constexpr std::size_t length = 203;
  for (const auto set : every_instruction_set())
    for (const std::size_t n : sizes{1, 2, 3})
      for (const bool floats : {false, true}) {
        CAPTURE(to_string(set));
        CAPTURE(n);
        CAPTURE(floats);
        mixing<T> mix(n, segments{length}, n);
        if (floats)
          for (double& weight : mix.weights) weight = static_cast<float>(weight);
        std::vector<T> expected(length), out(length);
        mix.run(set, whole(mix.cut), expected.data());
        for (std::size_t piece = 1; piece <= 70; ++piece) {
          for (std::size_t begin = 0; begin < length; begin += piece)
            mix.run(set, {mix.cut, {begin, std::min(begin + piece, length)}, begin}, out.data() + begin);
          REQUIRE(std::memcmp(out.data(), expected.data(), length * sizeof(T)) == 0);
        }
      }
}

TEST_CASE("float lanes keep the trailing bits of a weight") {
  // 1 + 2⁻²⁴ is 1 as a float. What is left of (1 + 2⁻²⁴) − 1 is the trailing part alone.
  const std::vector<float> ones(40, 1.0f);
  const float* const vectors[] = {ones.data(), ones.data()};
  const double weights[] = {1 + 0x1p-24, -1};
  for (const auto set : every_instruction_set()) {
    CAPTURE(to_string(set));
    std::vector<float> out(40);
    serial_space(set).mix<float>(whole(segments{40}), vectors, weights, out.data());
    for (const float value : out) REQUIRE(value == 0x1p-24f);
  }
}

}  // namespace test_of_exec_serial_mix
