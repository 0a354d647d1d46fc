// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedules/all_to_all.hpp>
#include <adasum/schedules/cost.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/schedules/recursive_halving.hpp>
#include <adasum/schedules/transfers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

#include "support/sizes.hpp"

namespace test_of_schedules_cost {

/// The model of docs/scale.md. That it counts what is really sent is tested with messages (tests/allreduce).

using namespace adasum::schedules;
using adasum::schedule_input;

namespace {

constexpr std::size_t float_size = 4;
const auto rank_counts = adasum::test::few_or_all(
    {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 15, 16, 17, 22, 30, 64, 96, 143},
    {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 15, 16, 17, 22, 30, 64, 96, 100, 112, 143, 256, 1000, 1024});
constexpr std::size_t lengths[] = {0, 1, 7, 1000, 102'400};

schedule_input floats(std::size_t length) { return {length, float_size, 1, true}; }

template <class Schedule>
std::vector<cost> costs(const Schedule& order, int size, std::size_t length) {
  std::vector<cost> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(cost_of(order, rank, size, floats(length)));
  return all;
}

std::size_t elements(const std::vector<cost>& all) {
  std::size_t sum = 0;
  for (const auto& one : all) sum += one.elements;
  return sum;
}

/// In ascending order.
std::vector<std::size_t> prime_factors(int size) {
  std::vector<std::size_t> factors;
  auto rest = static_cast<std::size_t>(size);
  for (std::size_t p = 2; rest > 1; ++p)
    for (; rest % p == 0; rest /= p) factors.push_back(p);
  return factors;
}
constexpr std::size_t widest_prime = 7;
bool is_folded(int size) { return size > 1 && prime_factors(size).back() > widest_prime; }

/// Of a prime that is folded: the largest power of two below it, and its logarithm.
std::size_t nodes(std::size_t prime) { return std::bit_floor(prime); }
std::size_t log2_of_nodes(std::size_t prime) { return static_cast<std::size_t>(std::countr_zero(nodes(prime))); }

/// Exchanges of a sum over so many ranks, of so many numbers.
std::size_t sum_exchanges(std::size_t size, std::size_t numbers) {
  const std::size_t radix = numbers <= 64 ? 8 : numbers <= 1024 ? 4 : 2;
  std::size_t exchanges = 0;
  for (std::size_t reached = 1; reached < size; reached *= radix) ++exchanges;
  return exchanges;
}

}  // namespace

TEST_CASE("halving of any radix and all_to_all send 2(P-1)·N elements in all, for any number of ranks and elements") {
  // all_to_all: rank r sends N less its slice, and its slice to P - 1 others: Σ = PN - N + (P - 1)N.
  // halving: before a level of radix q and span s there are P/s vectors. As above, each group of q vectors costs 2(q - 1)N:
  // Σ = 2N·P/s·(q - 1)/q = 2N(P/s - P/(sq)), and over the levels 2N(P - 1). Where a prime p is folded, p - 2^k vectors are
  // sent and their results come back, and 2^k vectors are left: 2(p - 2^k)N + 2(2^k - 1)N, which is as much.
  for (const int size : rank_counts)
    for (const auto length : lengths) {
      CAPTURE(size);
      CAPTURE(length);
      const auto expected = 2 * (static_cast<std::size_t>(size) - 1) * length;
      for (const std::size_t radix : {2u, 4u, 6u, 16u, 25u})
        CHECK(elements(costs(recursive_halving{radix}, size, length)) == expected);
      if (size <= 256) CHECK(elements(costs(all_to_all{}, size, length)) == expected);
    }
}

TEST_CASE("doubling: each rank sends its vector to those that it meets") {
  for (const int size : rank_counts)
    for (const auto length : lengths) {
      CAPTURE(size);
      CAPTURE(length);
      std::size_t vectors = 0, going_on = static_cast<std::size_t>(size);
      for (const auto prime : prime_factors(size)) {
        if (prime <= widest_prime) {
          vectors += going_on * (prime - 1);
          continue;
        }
        const auto groups = going_on / prime;
        vectors += groups * (2 * (prime - nodes(prime)) + nodes(prime) * log2_of_nodes(prime));
        going_on = groups * nodes(prime);
      }
      CHECK(elements(costs(recursive_doubling{}, size, length)) == vectors * length);
    }
}

TEST_CASE("each rank sends 2(P-1)/P·N of them where P divides N and nobody is folded") {
  for (const int size : rank_counts) {
    CAPTURE(size);
    const auto ranks = static_cast<std::size_t>(size), length = 10 * ranks;
    if (size <= 256)
      for (const auto& one : costs(all_to_all{}, size, length)) CHECK(one.elements == 2 * (ranks - 1) * 10);
    if (is_folded(size)) continue;
    for (const std::size_t radix : {2u, 4u, 8u, 25u})
      for (const auto& one : costs(recursive_halving{radix}, size, length)) CHECK(one.elements == 2 * (ranks - 1) * 10);
  }
}

TEST_CASE("a folded rank sends N elements, and the one that keeps its gradient N more than others") {
  for (const int size : {11, 17}) {
    const auto prime = static_cast<std::size_t>(size), folded = prime - nodes(prime), length = prime * nodes(prime);
    const auto share = 2 * (nodes(prime) - 1) * prime;  // 2(2^k - 1)/2^k · N
    const auto halving = costs(recursive_halving{}, size, length);
    for (std::size_t rank = 0; rank < prime; ++rank) {
      CAPTURE(rank);
      const bool in_pair = rank < 2 * folded, waits = in_pair && rank % 2 == 1;
      CHECK(halving[rank].elements == (waits ? length : share + (in_pair ? length : 0)));
    }
    for (const auto& one : costs(recursive_halving{prime}, size, length))
      CHECK(one.elements == 2 * (prime - 1) * nodes(prime));
  }
}

TEST_CASE("records that are joined to elements: the same bytes, in one message less for each") {
  // Nothing is joined where the host cannot read the elements.
  const schedule_input on_host{100, float_size, 3, true};
  auto on_device = on_host;
  on_device.on_device = true;
  const auto most = adasum::detail::most_joined(float_size, true);
  std::size_t joined_by_all = 0;
  for (int rank = 0; rank < 12; ++rank) {
    CAPTURE(rank);
    std::size_t joined = 0;
    for (const auto& stage : recursive_doubling{}.stages(rank, 12, on_host))
      for (const auto& sent : adasum::detail::transfers_to_combine(stage, most).sends) joined += sent.joined;
    const auto host = cost_of(recursive_doubling{}, rank, 12, on_host),
               device = cost_of(recursive_doubling{}, rank, 12, on_device);
    CHECK(host.bytes == device.bytes);
    CHECK(host.messages + joined == device.messages);
    joined_by_all += joined;
  }
  CHECK(joined_by_all > 0);
}

TEST_CASE("exchanges, one after another") {
  for (const int size : rank_counts) {
    if (size == 1) continue;
    CAPTURE(size);
    // Where parts of a sum are uneven, some ranks have nothing to do at first.
    const auto of = [&](const auto& order) {
      return std::ranges::max(costs(order, size, 102'400), {}, &cost::exchanges).exchanges;
    };
    const auto ranks = static_cast<std::size_t>(size);
    if (size <= 256) CHECK(of(all_to_all{}) == 2 + sum_exchanges(ranks, ranks * (ranks + 1) / 2));
    if (is_folded(size)) continue;
    CHECK(of(recursive_doubling{}) == prime_factors(size).size());
    for (const std::size_t radix : {2u, 8u}) {
      std::size_t expected = 0, span = 1, level = 1;
      const auto climb = [&] {
        span *= level;
        expected += 2 + sum_exchanges(span, level * (level + 1) / 2);
      };
      for (const auto prime : prime_factors(size)) {
        if (level * prime <= radix || level == 1) {
          level *= prime;
          continue;
        }
        climb();
        level = prime;
      }
      climb();
      CHECK(of(recursive_halving{radix}) == expected);
    }
  }
  // Two exchanges more for 17 ranks than for 16, of which the last ones hold a gradient each.
  for (const int size : {16, 17}) {
    const unsigned more = size == 16 ? 0 : 2;
    const auto of = [&](const auto& order) { return cost_of(order, 0, size, floats(102'400)).exchanges; };
    CHECK(of(recursive_doubling{}) == 4 + more);
    CHECK(of(recursive_halving{}) == 2 * 4 + 1 + 1 + 1 + 2 + more);
    CHECK(of(recursive_halving{.radix = 8}) == 2 * 2 + 1 + 2 + more);
  }
}

TEST_CASE("halving in m parts: elements, exchanges, sums and arithmetic of the levels that do not cut") {
  // 2(m-1)/m · N elements as far as vectors are cut, (q-1)·N/m at each level above; no way back from there, and sums of
  // q(q+1)/2 numbers over m ranks.
  struct sample {
    std::size_t radix, parts;
    int size;
    std::size_t above;  ///< levels that do not cut
  };
  // No structured binding: clang 14 captures none.
  for (const auto& given : {sample{2, 4, 64, 4}, sample{4, 4, 64, 2}, sample{4, 16, 1024, 3}, sample{8, 8, 512, 2},
                            sample{8, 64, 512, 1}}) {
    const auto radix = given.radix, parts = given.parts, above = given.above;
    const int size = given.size;
    CAPTURE(radix);
    CAPTURE(parts);
    const std::size_t length = 10'240, part = length / parts;
    const recursive_halving limited{radix, parts}, inside{radix};
    const auto cut = cost_of(inside, 0, static_cast<int>(parts), floats(length)),
               all = cost_of(inside, 0, size, floats(length));
    const auto sum = sum_exchanges(parts, radix * (radix + 1) / 2);
    for (const auto& one : costs(limited, size, length)) {
      CHECK(one.elements == cut.elements + above * (radix - 1) * part);
      CHECK(one.exchanges == cut.exchanges + above * (1 + sum));
      CHECK(one.exchanges < all.exchanges);
      CHECK(one.pair_elements == cut.pair_elements + (radix == 2 ? above * part : 0));
      CHECK(one.terms == cut.terms + (radix == 2 ? 0 : above * radix * part));
      CHECK(one.products == cut.products + (radix == 2 ? 0 : above * radix * (radix + 1) / 2 * part));
    }
  }
}

TEST_CASE("halving that leaves the last pairs whole sends what halving sends, with one exchange less") {
  for (const int size : {4, 16, 64}) {
    const auto ranks = static_cast<std::size_t>(size);
    const auto all = cost_of(recursive_halving{}, 0, size, floats(6400)),
               but_last = cost_of(recursive_halving{2, ranks / 2}, 0, size, floats(6400));
    CHECK(but_last.elements == all.elements);
    CHECK(but_last.exchanges < all.exchanges);
  }
}

TEST_CASE("arithmetic of one stage") {
  const auto two = cost_of(recursive_halving{}, 0, 2, floats(1000));
  CHECK(two.pair_elements == 500);
  CHECK(two.products == 0);
  const auto eight = cost_of(all_to_all{}, 3, 8, floats(1000));
  CHECK(eight.pair_elements == 0);
  CHECK(eight.products == 36 * 125);
  CHECK(eight.terms == 8 * 125);
}

TEST_CASE("handshakes: exchanges with a message longer than the link sends at once") {
  const machine on{.across = {.eager_bytes = 2000}};
  const auto handshakes = [&](const auto& order, std::size_t length) {
    return cost_of(order, 0, 2, floats(length), on).handshakes;
  };
  CHECK(handshakes(recursive_doubling{}, 500) == 0);
  CHECK(handshakes(recursive_doubling{}, 501) == 1);
  CHECK(handshakes(recursive_halving{}, 1000) == 0);
  CHECK(handshakes(recursive_halving{}, 1002) == 2);  // to combine and to gather; not the sum
  // The partner of a folded rank receives in one exchange, and sends in another.
  for (int rank = 0; rank < 11; ++rank) {
    const auto folded = cost_of(recursive_doubling{}, rank, 11, floats(501), on);
    CHECK(folded.exchanges > 0);
    CHECK(folded.handshakes == folded.exchanges);
  }
  const std::vector<int> nodes{0, 0, 1, 1};
  auto what = floats(600);
  what.nodes = nodes;
  const auto mixed = cost_of(recursive_doubling{}, 0, 4, what, {.across = {.eager_bytes = 1e9}});
  CHECK(mixed.handshakes == 1);
  CHECK(mixed.inside.handshakes == 1);
  const machine slow{.across = {.latency = 0, .per_message = 0, .per_byte = 0, .handshake = 1},
                     .inside = {0, 0, 0, 0, 7}};
  cost of;
  of.handshakes = 5;
  of.inside.handshakes = 2;
  CHECK(seconds(of, slow) == 3 + 14);
}

TEST_CASE("seconds are linear in what is counted") {
  const machine on{.across = {.latency = 1, .per_message = 10, .per_byte = 100},
                   .per_pair_element = 1e3,
                   .per_product = 1e4,
                   .per_term = 1e5};
  cost of;
  of.exchanges = 1;
  of.messages = 2;
  of.busier_bytes = 3;
  of.pair_elements = 4;
  of.products = 5;
  of.terms = 6;
  CHECK(seconds(of, on) == 654'321);
}

}  // namespace test_of_schedules_cost
