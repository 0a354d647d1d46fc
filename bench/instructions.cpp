// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     adasum_bench_instructions [case]
//
// A few calls of one case, for valgrind to count their instructions: bench/instructions.py runs it, and compares.
// Without an argument, the names of all cases: <what>/<scalar>/<elements>/<segments>. Everything is called once before
// it is counted, so that what happens only the first time is left out, and there is one thread, so that nothing depends
// on the machine's load. Prints what the counts belong to: kernels' instructions, elements of all counted calls.

#include <adasum/adasum.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "even_segments.hpp"
#include "noise.hpp"

/// binary16, also where the compiler has no type for it.
struct half {
  half() = default;
  explicit half(float value);
  std::uint16_t bits;
};
template <>
struct adasum::scalar_traits<half> : adasum::stored_as<adasum::number_format::binary16> {};
half::half(float value) { adasum::serial_space{}.copy(&value, this, 1); }

namespace {

constexpr int calls = 4;

/// One call of what is counted.
std::function<void()>* call = nullptr;

}  // namespace

/// valgrind counts between entering and leaving this function, which it finds by its name.
extern "C" [[gnu::noinline]] void adasum_counted_calls() {
  for (int i = 0; i < calls; ++i) (*call)();
}

namespace {

using adasum::serial_space;

template <class T>
std::vector<std::vector<T>> gradients(std::size_t count, std::size_t length) {
  std::vector<std::vector<T>> all(count, std::vector<T>(length));
  for (std::size_t i = 0; i < count; ++i) fill_with_noise(std::span(all[i]), static_cast<std::uint32_t>(i));
  return all;
}

template <class T>
std::vector<const T*> addresses(const std::vector<std::vector<T>>& vectors) {
  std::vector<const T*> all;
  for (const auto& vector : vectors) all.push_back(vector.data());
  return all;
}

/// Prepares a case of so many elements in so many segments.
using preparation = std::function<std::function<void()>(std::size_t elements, std::size_t segments)>;

template <class T>
std::function<void()> pair(std::size_t elements, std::size_t segments) {
  return [g = gradients<T>(2, elements), layers = even_segments(elements, segments)]() mutable {
    adasum::adasum_pair(serial_space{}, g[0], g[1], g[0], layers);
  };
}

template <class T, std::size_t Count>
std::function<void()> tree(std::size_t elements, std::size_t segments) {
  return [g = gradients<T>(Count, elements), layers = even_segments(elements, segments)]() mutable {
    adasum::adasum_tree(serial_space{}, g, g[0], layers);
  };
}

template <class T, std::size_t Count>
std::function<void()> measure(std::size_t elements, std::size_t segments) {
  return [g = gradients<T>(Count, elements), layers = even_segments(elements, segments),
          gram = std::vector<double>(segments * adasum::packed_size(Count))]() mutable {
    serial_space{}.measure<T>(adasum::whole(layers), addresses(g), gram.data());
  };
}

template <class T, std::size_t Count>
std::function<void()> mix(std::size_t elements, std::size_t segments) {
  return [g = gradients<T>(Count, elements), layers = even_segments(elements, segments), out = std::vector<T>(elements),
          weights = std::vector<double>(segments * Count, 1.0 / Count)]() mutable {
    serial_space{}.mix<T>(adasum::whole(layers), addresses(g), weights.data(), out.data());
  };
}

/// On the heap, since a std::function's target has to be copyable.
template <class Make>
auto shared(Make&& make) {
  using T = decltype(make());
  return std::shared_ptr<T>(new T(make()));
}

/// What a plan does beside messages and kernels: there is one rank, so it has none of them.
std::function<void()> plan(std::size_t elements, std::size_t segments) {
  const auto layers = even_segments(elements, segments);
  auto reduce =
      shared([&] { return adasum::plan_allreduce<float>(serial_space{}, adasum::self_communicator{}, layers); });
  return [g = gradients<float>(1, elements), reduce]() mutable { (*reduce)(g[0]); };
}

/// A communicator of two ranks, of which the other one always sends what this one does: what a rank does beside messages is
/// there, and nobody is waited for.
class mirror_communicator {
 public:
  int rank() const { return 0; }
  int size() const { return 2; }

  template <class Space>
  void exchange(const Space&, std::span<const adasum::outgoing> out, std::span<const adasum::incoming> in) const {
    for (std::size_t i = 0; i < in.size(); ++i)
      std::copy_n(out[i].bytes.begin(), std::min(out[i].bytes.size(), in[i].bytes.size()), in[i].bytes.begin());
  }
};

/// One rank of two under a schedule, which finds both gradients equal.
template <class Schedule>
std::function<void()> two_ranks(std::size_t elements, std::size_t segments) {
  const auto layers = even_segments(elements, segments);
  const adasum::options unchecked{.check_agreement = false};
  auto reduce = shared([&] {
    return adasum::plan_allreduce<float>(serial_space{}, mirror_communicator{}, layers, Schedule{}, unchecked);
  });
  return [g = gradients<float>(1, elements), reduce]() mutable { (*reduce)(g[0]); };
}

/// Micro-batches, each added to the ones before.
std::function<void()> accumulator(std::size_t elements, std::size_t segments) {
  const auto layers = even_segments(elements, segments);
  auto total = shared([&] { return adasum::plan_accumulator<float>(serial_space{}, layers); });
  return [g = gradients<float>(1, elements), total] { total->add(g[0]); };
}

struct counted_case {
  const char* what;
  preparation prepare;
  std::size_t elements, segments;
};

const counted_case cases[] = {
    {"pair/float", pair<float>, 1 << 10, 1},
    {"pair/float", pair<float>, 1 << 15, 1},
    {"pair/float", pair<float>, 1 << 15, 161},
    {"pair/float", pair<float>, 6 * 161, 161},
    {"pair/double", pair<double>, 1 << 15, 1},
    {"tree_of_8/float", tree<float, 8>, 1 << 14, 1},
    {"tree_of_8/float", tree<float, 8>, 1 << 14, 161},
    {"tree_of_8/float", tree<float, 8>, 6 * 161, 161},
    {"doubling/float", two_ranks<adasum::schedules::recursive_doubling>, 6 * 161, 161},
    {"halving/float", two_ranks<adasum::schedules::recursive_halving>, 6 * 161, 161},
    {"all_to_all/float", two_ranks<adasum::schedules::all_to_all>, 6 * 161, 161},
    {"accumulator/float", accumulator, 1 << 15, 1},
    {"plan/float", plan, 1 << 10, 161},
    {"measure_2/half", measure<half, 2>, 1 << 15, 1},
    {"mix_2/half", mix<half, 2>, 1 << 15, 1},
};

std::string name_of(const counted_case& one) {
  return std::string(one.what) + "/" + std::to_string(one.elements) + "/" + std::to_string(one.segments);
}

}  // namespace

int main(int argc, char** argv) {
  for (const auto& one : cases) {
    if (argc < 2) {
      std::puts(name_of(one).c_str());
    } else if (name_of(one) == argv[1]) {
      auto prepared = one.prepare(one.elements, one.segments);
      prepared();
      call = &prepared;
      adasum_counted_calls();
      std::printf("%s %zu\n", std::string(to_string(serial_space{}.instructions())).c_str(), calls * one.elements);
      return 0;
    }
  }
  if (argc < 2) return 0;
  std::fprintf(stderr, "adasum_bench_instructions: there is no case %s\n", argv[1]);
  return 2;
}
