// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the documentation's fragments speak of.
#pragma once

#include <adasum/chrome_trace.hpp>
#include <adasum/machine_file.hpp>
#include <adasum/measure_machine.hpp>
#include <adasum/mpi.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <limits>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

struct names {
  adasum::serial_space exec;
  const adasum::mpi_communicator& comm;
  std::vector<float> a, b, out, gradient;
  std::vector<std::vector<float>> gradients;
  adasum::segments segs;
  adasum::report found;
  std::ostringstream csv, json;
  static void compute();
  static void use(std::span<const float> part);
  static void compute(std::size_t layer, std::span<float> gradient);
};
