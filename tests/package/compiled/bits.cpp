// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints checksums of what the kernels and adasum_pair make of random numbers, one line for each scalar and each
// instruction set that the processor has.
#include <adasum/adasum.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <vector>

#if defined(ADASUM_TEST_COMPILED) != defined(ADASUM_COMPILED)
#error "adasum::compiled defines ADASUM_COMPILED, and nothing else does"
#endif

namespace {

using adasum::instruction_set;

/// FNV-1a.
class checksum {
 public:
  template <class T>
  void add(std::span<const T> values) {
    for (const auto byte : std::as_bytes(values)) sum_ = (sum_ ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
  }
  std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 14695981039346656037u;
};

template <class T>
void print(instruction_set set) {
  const adasum::serial_space exec(set);
  std::mt19937 random;
  std::normal_distribution<float> normal;
  checksum sum;
  for (const std::size_t length : {1, 15, 64, 101, 257, 5000})
    for (const float scale : {1.0f, 0x1p-80f, 0x1p+70f})  // float squares underflow, or overflow
      for (std::size_t n = 1; n <= 9; ++n) {
        std::vector<std::vector<T>> vectors(n, std::vector<T>(length));
        std::vector<const T*> addresses;
        for (auto& vector : vectors) {
          for (auto& element : vector)
            element = static_cast<T>(sizeof(T) == 2 ? normal(random) : scale * normal(random));
          addresses.push_back(vector.data());
        }
        const adasum::segments layers{length / 3, length - length / 3};
        std::vector<double> gram(2 * adasum::packed_size(n)), weights(2 * n);
        exec.measure<T>(adasum::whole(layers), addresses, gram.data());
        sum.add<double>(gram);
        for (auto& weight : weights) weight = normal(random);
        std::vector<T> out(length);
        exec.mix<T>(adasum::whole(layers), addresses, weights.data(), out.data());
        sum.add<T>(out);
        if (n != 2) continue;
        adasum::adasum_pair(exec, vectors[0], vectors[1], out, layers);
        sum.add<T>(out);
        adasum::adasum_pair(exec, vectors[0], vectors[0], out);
        sum.add<T>(out);
      }
  std::printf("%s %zu %016llx\n", std::string(to_string(exec.instructions())).c_str(), sizeof(T),
              static_cast<unsigned long long>(sum.value()));
}

}  // namespace

int main() {
  for (const auto set : {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
    if (set > adasum::best_instruction_set()) break;
    print<float>(set);
    print<double>(set);
#if ADASUM_HAS_FLOAT16
    print<_Float16>(set);
#endif
  }
}
