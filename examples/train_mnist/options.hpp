// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// What the command line chooses.
struct training_options {
  std::vector<std::string> rules{"adasum"};
  std::vector<std::size_t>
      workers;                 ///< of all ranks together, each a multiple of the ranks; every rule trains with each
  std::filesystem::path data;  ///< empty: generated digits
  std::size_t images = 8192;   ///< to train on; what is left over is held out
  std::size_t epochs = 2;
  double rate = 0.05;  ///< at its peak
  std::uint64_t seed = 1;
  std::filesystem::path csv;
  std::string history;  ///< what the names of its files begin with
  bool progress = true;
  bool help = false;
};

std::string usage();

/// @throws std::invalid_argument saying what is wrong
training_options parse_options(int argc, char** argv, int ranks);
