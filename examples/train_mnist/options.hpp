// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

/// What the command line chooses.
struct training_options {
  std::string rule = "adasum";
  std::size_t workers = 0;          ///< of all ranks together
  std::size_t virtual_workers = 0;  ///< of each rank
  std::filesystem::path data;       ///< empty: generated digits
  std::size_t images = 8192;        ///< to train on; what is left over is held out
  std::size_t epochs = 2;
  double rate = 0.05;  ///< at its peak
  std::uint64_t seed = 1;
  std::filesystem::path csv, history;
  bool progress = true;
  bool help = false;
};

std::string usage();

/// @throws std::invalid_argument saying what is wrong
training_options parse_options(int argc, char** argv, int ranks);
