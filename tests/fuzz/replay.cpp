// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// main() of a fuzz target without a fuzzer.
//
//     fuzz_TARGET FOLDER...            runs it once for each file of the folders; exits with 1 if there is none
//     fuzz_TARGET --random COUNT SEED  runs it with random bytes, made from SEED, SEED + 1, … Each seed is printed before its
//                                      run, so that the last one is that of a run that ends the program, or hangs
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

int run_random(unsigned long count, unsigned long seed) {
  for (const auto end = seed + count; seed != end; ++seed) {
    std::fprintf(stderr, "\rseed %lu", seed);
    std::mt19937_64 random(seed);
    std::vector<std::uint8_t> bytes(random() % 400);
    for (auto& one : bytes) one = static_cast<std::uint8_t>(random());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::fprintf(stderr, "\n%lu inputs\n", count);
  return count > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--random")
    return run_random(std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10));
  std::size_t files = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++files;
    }
  std::printf("%zu inputs\n", files);
  return files > 0 ? 0 : 1;
}
